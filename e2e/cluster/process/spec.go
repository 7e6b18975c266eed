// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tailBytes is how much of the end of a log explains a failure.
const tailBytes = 4096

// Spec says how to run a program.
type Spec struct {
	// Name is what the program is called in messages and records.
	Name string
	// Path is the program file.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the whole environment: proxies and settings of the starter have no part in it.
	Env []string
	// Inputs are files whose content the program reads once, at its start.
	Inputs []string
	// Log is the file that takes what the program prints. The log of the run
	// before is kept beside it, with ".1" at its end.
	Log string
}

// Fingerprint is equal for two specifications that run the same thing: when it
// has changed, a running program has to be started again.
func (s Spec) Fingerprint() (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%q %q %q\n", s.Path, s.Args, s.Env)
	for _, input := range s.Inputs {
		content, err := os.ReadFile(input)
		if err != nil {
			return "", fmt.Errorf("read an input of %s: %w", s.Name, err)
		}
		fmt.Fprintf(digest, "%s %d\n%s", input, len(content), content)
	}
	return hex.EncodeToString(digest.Sum(nil))[:16], nil
}

// LogTail is the end of what the program printed, for an error message.
func (s Spec) LogTail() string {
	content, err := os.ReadFile(s.Log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	if len(content) > tailBytes {
		content = content[len(content)-tailBytes:]
	}
	return strings.TrimSpace(string(content))
}

// command prepares the program with a fresh log. The caller closes the log once
// the program has been started.
func (s Spec) command() (*exec.Cmd, *os.File, error) {
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o750); err != nil {
		return nil, nil, fmt.Errorf("make the folder of the log of %s: %w", s.Name, err)
	}
	if err := os.Rename(s.Log, s.Log+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("keep the former log of %s: %w", s.Name, err)
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log of %s: %w", s.Name, err)
	}
	command := exec.Command(s.Path, s.Args...) //nolint:noctx // what it runs outlives the call
	command.Env = s.Env
	command.Stdout, command.Stderr = log, log
	return command, log, nil
}
