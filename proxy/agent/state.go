// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// state is what an agent notes of what is live. The next agent serves
// the same until it has learned what is wanted.
type state struct {
	// Split that is live.
	Split traffic.Split `json:"split"`
	// Instance that serves it: the number of its folder.
	Instance int `json:"instance"`
}

func saveState(dir nginx.Dir, s state) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = replace.File(dir.State(), data)
	}
	if err != nil {
		return fmt.Errorf("note what is live: %w", err)
	}
	return nil
}

// loadState finds what another agent noted; nil when nothing was live.
func loadState(dir nginx.Dir) (*state, error) {
	data, err := os.ReadFile(dir.State())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s state
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("find out what is live: %w", err)
	}
	return &s, nil
}
