// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// stateFormat is the form of all that an agent leaves in the folder for the next one. It changes
// when an older agent's files can't be read any more: an image can be changed in a pod.
const stateFormat = 1

// state is what an agent notes of what is live. The next agent serves
// the same until it has learned what is wanted.
type state struct {
	// Format is stateFormat of the agent that noted it.
	Format int `json:"format"`
	// Pod that the agent runs in. A pod serves one split, and goes with it.
	Pod types.UID `json:"pod"`
	// Split that is live.
	Split traffic.Split `json:"split"`
	// Instance that serves it: the number of its folder.
	Instance int `json:"instance"`
}

func saveState(dir conf.Dir, s state) error {
	s.Format = stateFormat
	data, err := json.Marshal(s)
	if err == nil {
		err = replace.File(dir.State(), data)
	}
	if err != nil {
		return fmt.Errorf("note what is live: %w", err)
	}
	return nil
}

// loadState finds what another agent of the pod noted; nil when nothing was live.
func loadState(dir conf.Dir, pod types.UID) (*state, error) {
	data, err := os.ReadFile(dir.State())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s state
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.check(pod)
	}
	if err != nil {
		return nil, fmt.Errorf("find out what is live: %w", err)
	}
	return &s, nil
}

// check refuses what an agent of this version in this pod did not note.
func (s state) check(pod types.UID) error {
	switch {
	case s.Format != stateFormat:
		return fmt.Errorf("it has the format %d, and this agent reads %d", s.Format, stateFormat)
	case s.Pod != pod:
		return fmt.Errorf("it is that of the pod %q", s.Pod)
	}
	return nil
}
