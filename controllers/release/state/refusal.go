// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Refuse is a statement of what a user has to fix before Serin can go on.
func Refuse(reason v1alpha1.Reason, format string, args ...any) *kit.Statement {
	return &kit.Statement{Stalled: true, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ServiceMissing says that the root Service does not exist.
func ServiceMissing(s *Snapshot) *kit.Statement {
	if s.Service.Presence != kit.Absent {
		return nil
	}
	return Refuse(v1alpha1.ReasonServiceNotFound, "spec.service: the Service %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.Service)
}

// SplitTaken says that the name of the split is another owner's.
func SplitTaken(s *Snapshot) *kit.Statement {
	if s.Split.Presence != kit.Present || s.Split.Ours {
		return nil
	}
	return Refuse(v1alpha1.ReasonConflict, "The TrafficSplit %q exists already and is not Serin's; rename or delete it, since a release needs the name.", s.Rollout.Name)
}
