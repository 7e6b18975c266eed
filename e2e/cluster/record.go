// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// record is what is known of a local cluster between two commands. It is
// written before what it speaks of is done.
type record struct {
	// Boot is the boot of the machine that the cluster was last started in.
	Boot string `json:"boot"`
	// Processes are those that were started, by name.
	Processes map[string]startedProcess `json:"processes"`

	path string
}

// startedProcess is a process with what it was started from.
type startedProcess struct {
	process.Identity
	Fingerprint string `json:"fingerprint"`
}

// readRecord reads the record of the cluster in dir. One that cannot be read
// gives an empty record: what is running is then found by other means.
func readRecord(dir string) (*record, error) {
	r := &record{path: filepath.Join(dir, "cluster.json")}
	content, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the record of the cluster: %w", err)
	}
	if err == nil && json.Unmarshal(content, r) != nil {
		*r = record{path: r.path}
	}
	if r.Processes == nil {
		r.Processes = map[string]startedProcess{}
	}
	return r, nil
}

// write replaces the record, whole or not at all.
func (r *record) write() error { return writeJSON(r.path, r) }

// writeJSON replaces a file, whole or not at all.
func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	scratch := path + ".new"
	if err := os.WriteFile(scratch, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(scratch, path)
}

// forget drops what the record says of processes of an earlier boot.
func (r *record) forget(boot string) (restarted bool) {
	restarted = r.Boot != "" && r.Boot != boot
	if restarted {
		r.Processes = map[string]startedProcess{}
	}
	r.Boot = boot
	return restarted
}
