// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// Some objects of a data plane are what its routes refer to, such as the subsets of a
// backend. Proxies learn of each object on its own, so such a one is there for the
// time to settle before a route refers to it, and is deleted only when no proxy can
// have such a route any more.
//
//	prepare | settle | write the routes | settle | Programmed …
//	… restore the routes | settle | delete what was prepared

// unprepared is how long routes that refer to prepared objects are not to be written
// yet. The event of an object that has to be written first triggers the next look.
func (o Observation) unprepared() (left time.Duration, waiting bool) {
	for _, object := range o.DataPlane.Objects {
		if !object.Prepares || object.Unwanted {
			continue
		}
		if object.Condition != traffic.ObjectCurrent {
			return 0, true
		}
		// The clock of the API server may be ahead of this one.
		rest := min(object.Created.Add(o.DataPlane.Settle).Sub(o.Now), o.DataPlane.Settle)
		left = max(left, rest)
	}
	return left, left > 0
}

// unprepare deletes prepared objects that no route refers to any more.
func unprepare(o Observation, why string) []kit.Action {
	var actions []kit.Action
	for _, object := range o.DataPlane.Objects {
		if object.Prepares && object.Unwanted && exists(object) {
			actions = append(actions, Delete{Write{object, why}})
		}
	}
	return actions
}
