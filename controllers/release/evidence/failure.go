// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Cause is why a release is rolled back.
type Cause struct{ Reason, Message string }

// Failed reports whether the canary answered too badly since the last look, in every
// phase of the release.
func Failed(s *state.Snapshot) bool { return Failure(s) != Cause{} }

// Failure is why the canary has to be rolled back; empty when it does not.
func Failure(s *state.Snapshot) Cause {
	if s.Failing && !s.PauseOnFailure {
		return Cause{string(s.Verdict.Reason), s.Verdict.Explain()}
	}
	called, scales := s.Called(), s.Scales()
	switch {
	case !called || !scales && !s.Begun():
		return Cause{}
	case s.Canary == nil:
		return Cause{v1alpha1.ReasonCanaryUnavailable, "the canary's ReplicaSet was deleted while it got traffic"}
	case s.Canary.Available == 0 && (!scales || s.Workload.Replicas > 0) && !excused(s):
		return Cause{v1alpha1.ReasonCanaryUnavailable, "none of the canary's pods was available while the canary got traffic"}
	}
	return Cause{}
}

// excused reports whether the canary may lack its pods by what is no evidence against it.
func excused(s *state.Snapshot) bool {
	_, recovering := s.Recovering()
	return recovering || s.Unreported()
}
