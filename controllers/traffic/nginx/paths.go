// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
)

// Dir is the folder that nginx and the agent share, in memory. Everything that
// either of them writes is in it.
type Dir string

// DefaultDir is where a proxy pod mounts its memory volume.
const DefaultDir Dir = "/run/serin"

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./-]+$`)

// check refuses a folder whose name would need quoting.
func (d Dir) check() error {
	if !plainPath.MatchString(string(d)) || path.Clean(string(d)) != string(d) {
		return fmt.Errorf("dir: %q must be a clean absolute path of letters, digits and ._-/", d)
	}
	return nil
}

// Config is the configuration in effect.
func (d Dir) Config() string { return path.Join(string(d), "nginx.conf") }

// Candidate is a configuration that is being tested.
func (d Dir) Candidate() string { return path.Join(string(d), "candidate.conf") }

// AccessLog is the file that nginx appends a line to for each request.
func (d Dir) AccessLog() string { return path.Join(string(d), "access.log") }

// StatusSocket is the unix socket of nginx's status server.
func (d Dir) StatusSocket() string { return path.Join(string(d), "status.sock") }

// MirrorSocket is the unix socket of the server that waits for the copies of a
// listener's requests.
func (d Dir) MirrorSocket(listener int) string {
	return path.Join(string(d), "mirror-"+strconv.Itoa(listener)+".sock")
}

// PID is nginx's process-id file.
func (d Dir) PID() string { return path.Join(string(d), "nginx.pid") }

// Temp is where nginx keeps request bodies that it has to buffer.
func (d Dir) Temp() string { return path.Join(string(d), "temp") }

// Closing is a file whose presence makes nginx close each client connection
// after the answer, saying so in it.
func (d Dir) Closing() string { return path.Join(string(d), "closing") }

// Targets holds an empty folder for each backend. The name of the folder that a
// table entry leads to is how nginx learns its choice.
func (d Dir) Targets() string { return path.Join(string(d), "targets") }

// Target is the folder of one backend.
func (d Dir) Target(id string) string { return path.Join(d.Targets(), id) }

// Tables is the folder of the tables of the configuration with the given key.
func (d Dir) Tables(key string) string { return path.Join(string(d), "tables", key) }

// Current is the link that leads to the table in effect. Replacing it changes
// the weights of every worker at once.
func (d Dir) Current(key string) string { return path.Join(d.Tables(key), "current") }

// entry is where nginx looks the choice of a listener up: two levels of a
// hundred entries each.
func (d Dir) entry(key string, listener int) string {
	return path.Join(d.Current(key), strconv.Itoa(listener), "$serin_high", "$serin_low")
}
