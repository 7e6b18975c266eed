// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func init() {
	scenarios = append(scenarios, pairs...)
}

// twoServices is a Rollout of two Services that users keep.
func (w *world) twoServices() {
	w.dep.absent = true
	w.ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{}
	w.ro.Spec.Services = &v1alpha1.ServicePair{Stable: "foobar-v1", Canary: "foobar-v2"}
	w.pair = state.Pair{StableRevision: "v1", CanaryRevision: "none", StableReady: 3}
	w.untilReason(v1alpha1.ReasonStable)
}

// behindCanary puts pods behind the canary's Service.
func (w *world) behindCanary(revision string, ready int32) {
	w.pair.CanaryRevision, w.pair.CanaryReady, w.dirty = revision, ready, true
	w.say("user: %d pods of %s behind the canary's Service", ready, revision)
}

var pairs = []scenario{
	{"traffic moves between two Services, and on to the next", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(100)
		w.untilReason(v1alpha1.ReasonStable)
		w.run(60)
		w.edit("services foobar-v2, foobar-v3", func(s *v1alpha1.RolloutSpec) {
			s.Services = &v1alpha1.ServicePair{Stable: "foobar-v2", Canary: "foobar-v3"}
		})
		w.split.requested, w.split.observed, w.split.served = strategy.Route{Weight: -1}, -1, w.split.generation // other names
		w.pair = state.Pair{StableRevision: "v2", CanaryRevision: "v3", StableReady: 2, CanaryReady: 2}
		w.untilWeight(50)
		w.untilReason(v1alpha1.ReasonStable)
	}},
	{"a bad version behind a Service is rolled back, and a better one follows", func(w *world) {
		w.failures["v2"] = 5
		w.twoServices()
		w.behindCanary("v2", 2)
		w.until("rolled back", w.rolledBack)
		w.run(60)
		w.behindCanary("v2b", 2)
		w.untilWeight(100)
		w.untilReason(v1alpha1.ReasonStable)
	}},
	{"the pods behind the canary's Service change in the middle of a release", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(50)
		w.behindCanary("v3", 2)
		w.untilWeight(10)
		w.untilWeight(100)
		w.untilReason(v1alpha1.ReasonStable)
	}},
	{"the pods behind the canary's Service stop answering", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(50)
		w.tampered = true // only Serin takes the traffic away
		w.behindCanary("v2", 0)
		w.until("rolled back", w.rolledBack)
		w.tampered = false
	}},
	{"a Service is named as stable that has no traffic", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(100)
		w.untilReason(v1alpha1.ReasonStable)
		w.edit("services foobar-v1, foobar-v3", func(s *v1alpha1.RolloutSpec) {
			s.Services = &v1alpha1.ServicePair{Stable: "foobar-v1", Canary: "foobar-v3"}
		})
		w.untilReason(v1alpha1.ReasonConflict)
	}},
	{"the Rollout of two Services is deleted in the middle", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(50)
		w.remove()
		w.until("gone", func() bool { return w.gone })
	}},
	{"the Rollout of two Services is deleted after a promotion", func(w *world) {
		w.twoServices()
		w.behindCanary("v2", 2)
		w.untilWeight(100)
		w.untilReason(v1alpha1.ReasonStable)
		w.pair.StableReady = 0
		w.remove()
		w.until("gone", func() bool { return w.gone })
	}},
}
