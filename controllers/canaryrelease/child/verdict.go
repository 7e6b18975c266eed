// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// ending is how a process ended.
type ending struct {
	// late is whether its time was over, stopped whether the caller's was, and recalled
	// whether another namespace waited for its slot.
	late, stopped, recalled bool
	// tooMuch is whether its answer was too large.
	tooMuch bool
	// killed is whether a signal ended it, and ok whether it ended well.
	killed, ok bool
	// overTime is whether it computed for as long as it may.
	overTime bool
	// exhausted is whether it got no memory.
	exhausted bool
}

// verdict is the error that a process ended with. It repeats nothing that the process said:
// that may be a value of the release.
func verdict(e ending, l Limits) error {
	switch {
	case e.tooMuch:
		return releases.LimitError(fmt.Sprintf("the objects that the canary needs from the chart have more than %d MiB: make the ConfigMaps and Secrets that its pods read smaller", releases.MaxAnswer>>20))
	case e.ok:
		return nil
	case e.recalled:
		return releases.FailureError(fmt.Sprintf("Helm took longer than %s, probably because of hooks, while another namespace waited for it, and was interrupted: make the hooks of the chart faster", upgradeKeep))
	case e.stopped:
		return releases.FailureError("Helm was interrupted, and Serin calls it again")
	case e.late:
		return releases.LimitError(fmt.Sprintf("Helm takes longer than its time limit of %s: make the chart or its values simpler", l.Time))
	case e.overTime:
		return releases.LimitError(fmt.Sprintf("Helm uses more CPU time than its limit of %s: make the chart or its values simpler", l.CPU))
	case e.exhausted:
		return releases.LimitError(fmt.Sprintf("Helm needs more memory than its limit of %d MiB: make the chart or its values smaller", l.Memory>>20))
	case e.killed:
		return releases.FailureError("the process that runs Helm was killed, probably because the manager's pod ran out of memory: raise resources.limits.memory of the operator's chart")
	}
	return releases.FailureError("the process that runs Helm failed: check whether helm upgrade --dry-run=server fails too")
}
