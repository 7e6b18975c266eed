// SPDX-License-Identifier: Apache-2.0

package conf

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

// AccessLog is the file that nginx appends a line to for each request.
func (d Dir) AccessLog() string { return path.Join(string(d), "access.log") }

// Temp is where nginx keeps request bodies that it has to buffer.
func (d Dir) Temp() string { return path.Join(string(d), "temp") }

// State is what an agent notes for the one that replaces it when it crashes.
func (d Dir) State() string { return path.Join(string(d), "state.json") }

// Counts are the counts of requests up to a position in the access log.
func (d Dir) Counts() string { return path.Join(string(d), "counts.json") }

// Current is the link to the folder of the nginx that serves new clients.
func (d Dir) Current() string { return path.Join(string(d), currentLink) }

// Instance is the folder of the nginx that was started as the n-th.
func (d Dir) Instance(n int) Instance {
	return Instance(path.Join(string(d), "nginx-"+strconv.Itoa(n)))
}

// Instance is the folder of one nginx: a master process with its workers, which
// serves one configuration for as long as it runs. It is their working directory, so
// that the configuration names what is in it by short paths: nginx follows
// one of them for each request, and each of its steps takes time.
type Instance string

// The names in an Instance, as the configuration uses them.
const (
	configFile   = "nginx.conf"
	pidFile      = "nginx.pid"
	statusSocket = "status.sock"
	firstTable   = "first"
	secondTable  = "second"
	retiredFile  = "retired"
	currentLink  = "current"
)

// Config is the configuration.
func (i Instance) Config() string { return path.Join(string(i), configFile) }

// PID is the file with the id of the master process. Its absence means that the
// master has ended in order or never served.
func (i Instance) PID() string { return path.Join(string(i), pidFile) }

// StatusSocket is the unix socket of the status server.
func (i Instance) StatusSocket() string { return path.Join(string(i), statusSocket) }

// Retired is a file whose presence makes an nginx hand requests over to the Current
// one, where a client of HTTP/2 still sends any.
func (i Instance) Retired() string { return path.Join(string(i), retiredFile) }

// callSocket is the unix socket by which a listener of HTTP/2 takes requests from a
// previous nginx, and successorSocket is that of the Current one.
func callSocket(listener int) string { return "calls-" + strconv.Itoa(listener) + ".sock" }

func successorSocket(listener int) string {
	return path.Join("..", currentLink, callSocket(listener))
}

// mirrorSocket is the unix socket of the server that waits for the mirrored requests of a
// listener.
func mirrorSocket(listener int) string { return "mirror-" + strconv.Itoa(listener) + ".sock" }

// First is the link to the table that each request is looked up in. A request
// that has no entry there is looked up in Second, and its connection is closed
// after the answer, which says so. So a First without entries asks all clients to
// close their connections, and costs the others nothing.
func (i Instance) First() string { return path.Join(string(i), firstTable) }

// Second is the link to the live table.
func (i Instance) Second() string { return path.Join(string(i), secondTable) }

// Folder is the name of a backend's folder in the table of a listener. In it are
// hundred folders of hundred files each, one for each bucket. An executable
// file means that the backend gets the bucket.
func Folder(listener int, id string) string { return strconv.Itoa(listener) + "-" + id }

// Whole is the name of the folder that is in a table when a backend has all buckets of one of
// the Parts. nginx remembers of a folder that it is there without keeping it open. It
// is not in the backend's Folder: a path that is looked up for each request has to be short.
func Whole(listener int, id, part string) string { return Folder(listener, id) + "-" + part }

// wholeEntry is where nginx looks up whether a backend gets all requests of the part
// that one is in. It is relative to the Instance.
func wholeEntry(table string, listener int, id string) string {
	return path.Join(table, Whole(listener, id, "$serin_part"))
}

// keptEntry is where nginx looks up whether the backend in a variable has a weight
// above 0. It is relative to the Instance.
func keptEntry(table string, listener int, variable string) string {
	return path.Join(table, Folder(listener, variable), AnyBucket)
}

// entry is where nginx looks up whether a backend gets a request. It is relative
// to the Instance.
func entry(table string, listener int, id string) string {
	return path.Join(table, Folder(listener, id), "$serin_high", "$serin_low")
}
