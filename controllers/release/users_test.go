// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// edit changes the spec as kubectl apply does.
func (w *world) edit(what string, change func(*v1alpha1.RolloutSpec)) {
	w.everSteps()
	change(&w.ro.Spec)
	w.ro.Generation++
	w.dirty = true
	w.say("user: %s", what)
}

// steps sets the steps before anything happens.
func (w *world) steps(steps ...v1alpha1.Step) { w.ro.Spec.Strategy.Steps = steps }

// control is what a user decides about the revision being released.
func (w *world) control(action v1alpha1.ControlAction, revision string) {
	if action == v1alpha1.ControlRetry && strings.TrimLeft(revision, "sk") == w.rejected {
		w.rejected = ""
	}
	w.edit(string(action)+" "+revision, func(s *v1alpha1.RolloutSpec) {
		s.Control = &v1alpha1.Control{Revision: revision, Action: action, By: "ada"}
	})
}

func (w *world) untilReason(reason v1alpha1.Reason) {
	w.t.Helper()
	w.until(reason, func() bool { return w.is(reason) })
}

func (w *world) untilWeight(weight int32) {
	w.t.Helper()
	w.until("weight", func() bool {
		return w.split != nil && w.split.observed == weight && w.split.served == w.split.generation
	})
}

// answer is what every hook and endpoint says from now on to what it was asked.
func (w *world) answer(a state.Answer) {
	for id := range w.asked {
		w.answers[id] = a
	}
	w.dirty = true
	w.say("endpoints: final %v, taken %v", a.Final, a.Taken)
}

func (w *world) freeze(reason string) {
	w.freezes, w.dirty = nil, true
	if reason != "" {
		w.freezes = []v1alpha1.Freeze{{ObjectMeta: metav1.ObjectMeta{Name: "audit"}, Spec: v1alpha1.FreezeSpec{Reason: reason}}}
	}
	w.say("platform: freeze %q", reason)
}

func init() {
	scenarios = append(scenarios, userScenarios...)
}

// userScenarios are what users and other actors do to a release.
var userScenarios = []scenario{
	{"a manual step waits for a user who promotes", func(w *world) {
		w.steps(v1alpha1.Step{Weight: 10, Hold: "30s", Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 50, Hold: "10s"})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForApproval)
		w.run(300)
		w.control(v1alpha1.ControlPromote, "sv2")
		w.ready()
		w.run(60)
	}},
	{"a user skips a step that has no traffic", func(w *world) {
		w.rps = 0
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForEvidence)
		w.control(v1alpha1.ControlSkip, "sv2")
		w.untilWeight(50)
		w.run(60)
		w.edit("skips step 2", func(s *v1alpha1.RolloutSpec) { s.Control.StepIndex = new(int32(1)) })
		w.ready()
	}},
	{"a user promotes fully", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.control(v1alpha1.ControlPromoteFull, "sv2")
		w.ready()
	}},
	{"a user aborts, and retries later", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(50)
		w.control(v1alpha1.ControlAbort, "sv2")
		w.until("rolled back", w.rolledBack)
		w.run(60)
		w.control(v1alpha1.ControlRetry, "sv2")
		w.ready()
	}},
	{"a user aborts while the canary is being promoted", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonPromoting)
		w.control(v1alpha1.ControlAbort, "sv2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a decision about another revision does nothing", func(w *world) {
		w.ready()
		w.control(v1alpha1.ControlAbort, "kv1")
		w.run(5)
		w.setTemplate("v2")
		w.untilWeight(10)
		w.control(v1alpha1.ControlAbort, "sv3")
		w.ready()
	}},
	{"a ramp doubles the weight", func(w *world) {
		w.ro.Spec.Strategy = v1alpha1.Strategy{Ramp: &v1alpha1.Ramp{From: 5, To: 50, Every: "20s", Times: "2"}}
		w.ready()
		w.setTemplate("v2")
		w.ready()
	}},
	{"steps are inserted in the middle of a release", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.run(10)
		w.edit("steps 5, 10, 20, 40", func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Steps = []v1alpha1.Step{{Weight: 5, Hold: "10s"}, {Weight: 10, Hold: "30s"}, {Weight: 20, Hold: "10s"}, {Weight: 40, Hold: "10s"}}
		})
		w.ready()
	}},
	{"the present step is removed from the steps", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(50)
		w.edit("steps 20, 70", func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Hold: "10s"}, {Weight: 70, Hold: "10s"}}
		})
		w.ready()
	}},
	{"every step becomes higher than the present weight", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.edit("steps 30, 60", func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Steps = []v1alpha1.Step{{Weight: 30, Hold: "10s"}, {Weight: 60, Hold: "10s"}}
		})
		w.ready()
	}},
	{"the canary has more pods than its share", func(w *world) {
		all, two := intstr.FromString("100%"), intstr.FromInt32(2)
		w.steps(v1alpha1.Step{Weight: 0, CanaryReplicas: &two}, v1alpha1.Step{Weight: 20, Hold: "10s", CanaryReplicas: &all})
		w.ready()
		w.setTemplate("v2")
		w.ready()
	}},
	{"a release is paused in the middle of a step", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.edit("paused", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
		w.run(1200)
		w.edit("not paused", func(s *v1alpha1.RolloutSpec) { s.Paused = false })
		w.ready()
	}},
	{"a platform freezes everything in the middle of a step", func(w *world) {
		w.ready()
		w.freeze("audit")
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForSchedule)
		w.run(100)
		w.freeze("")
		w.untilWeight(10)
		w.freeze("audit")
		w.run(1200)
		w.freeze("")
		w.ready()
	}},
	{"a bad version is rolled back in a freeze", func(w *world) {
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.freeze("audit")
		w.until("rolled back", w.rolledBack)
	}},
	{"blue-green switches at once and keeps the old version", func(w *world) {
		w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Hold: "20s", Until: v1alpha1.UntilManual, ScaleDownDelay: "60s"}}
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForApproval)
		w.control(v1alpha1.ControlPromote, "sv2")
		w.ready()
	}},
	{"blue-green with a preview Service", func(w *world) {
		blueGreenWithPreview(w)
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForApproval)
		w.control(v1alpha1.ControlPromote, "sv2")
		w.ready()
	}},
	{"blue-green with a preview Service is aborted", func(w *world) {
		blueGreenWithPreview(w)
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForApproval)
		w.control(v1alpha1.ControlAbort, "sv2")
		w.until("rolled back", w.rolledBack)
	}},
	{"blue-green without a proxy is judged by nothing and switches at once", func(w *world) {
		w.ro.Spec.Router = v1alpha1.RouterNone
		w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, ScaleDownDelay: "60s"}}
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForApproval)
		w.control(v1alpha1.ControlPromote, "sv2")
		w.until("weight 100", func() bool { return w.split.observed == 100 })
		if n := w.byRevision("kv1").available; n != 4 {
			w.t.Errorf("%d pods of the old version after the switch", n)
		}
		w.ready()
	}},
	{"blue-green without a proxy switches back when what counts its requests says so", func(w *world) {
		w.ro.Spec.Router, w.ro.Spec.Analysis = v1alpha1.RouterNone, &v1alpha1.Analysis{MinSuccessRate: "99%"}
		w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{ScaleDownDelay: "60s"}}
		w.failures["v2"] = 20
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"blue-green rolls back in one write", func(w *world) {
		w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{ScaleDownDelay: "60s"}}
		w.ro.Spec.Analysis = &v1alpha1.Analysis{MinSuccessRate: "99%"}
		w.failures["v2"] = 20
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"users who match see the new version first", func(w *world) {
		w.steps(v1alpha1.Step{Weight: 100, Matches: []string{"testers"}, Hold: "20s"}, v1alpha1.Step{Weight: 20, Hold: "20s"})
		w.ready()
		w.setTemplate("v2")
		w.ready()
	}},
	{"a test by matches ends with everybody on the new version", func(w *world) {
		w.ro.Spec.Strategy.Type = v1alpha1.StrategyABTest
		w.steps(v1alpha1.Step{Weight: 50, Matches: []string{"firefox", "chrome"}, Hold: "20s"})
		w.ready()
		w.setTemplate("v2")
		w.ready()
	}},
	{"requests are copied to the canary before it answers any", func(w *world) {
		w.steps(v1alpha1.Step{Weight: 0, Mirror: new(int32(50)), Hold: "20s"}, v1alpha1.Step{Weight: 20, Hold: "20s"})
		w.ready()
		w.setTemplate("v2")
		w.ready()
	}},
	{"a failed analysis leaves it to a user, who aborts", func(w *world) {
		w.ro.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonAnalysisFailed)
		w.run(100)
		w.control(v1alpha1.ControlAbort, "sv2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a failed analysis leaves it to a user, who goes on", func(w *world) {
		w.ro.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonAnalysisFailed)
		w.control(v1alpha1.ControlSkip, "sv2")
		w.untilWeight(50)
		w.untilReason(v1alpha1.ReasonAnalysisFailed)
		w.control(v1alpha1.ControlPromoteFull, "sv2")
		w.ready()
	}},
	{"a bad version loses its traffic little by little", func(w *world) {
		w.ro.Spec.Strategy.RollBackOver = "100s"
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(50)
		w.control(v1alpha1.ControlAbort, "sv2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a version that was stable comes back without steps", func(w *world) {
		w.ro.Spec.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: 2}
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
		w.freeze("audit")
		w.setTemplate("v1")
		w.run(2)
		w.ready()
	}},
	{"a hook is called before the release begins", func(w *world) {
		w.hooks(v1alpha1.Hook{Name: "tickets", When: v1alpha1.HookBeforeRelease})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForHook)
		w.run(60)
		w.answer(state.Answer{Final: true, Taken: true})
		w.ready()
	}},
	{"a hook refuses a step", func(w *world) {
		w.hooks(v1alpha1.Hook{Name: "tests", When: v1alpha1.HookBeforeStep})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForHook)
		w.answer(state.Answer{Final: true, Taken: true})
		w.untilWeight(10)
		w.untilReason(v1alpha1.ReasonWaitingForHook)
		w.answer(state.Answer{Final: true})
		w.until("rolled back", w.rolledBack)
	}},
	{"a hook does not answer in time", func(w *world) {
		w.hooks(v1alpha1.Hook{Name: "tests", When: v1alpha1.HookBeforePromotion, Timeout: "5m"})
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a hook opens a gate", func(w *world) {
		w.steps(v1alpha1.Step{Weight: 10, Hold: "10s", Until: v1alpha1.UntilManual})
		w.hooks(v1alpha1.Hook{Name: "approval", When: v1alpha1.HookGate}, v1alpha1.Hook{Name: "report", When: v1alpha1.HookAfterRelease})
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForHook)
		w.answer(state.Answer{Final: true, Taken: true})
		w.ready()
		w.run(30)
		w.answer(state.Answer{Final: true, Taken: true})
	}},
	{"users are notified", func(w *world) {
		w.ro.Spec.Notifications = []v1alpha1.Notification{
			{Name: "everything"}, {Name: "ends", Events: []v1alpha1.NotificationKind{v1alpha1.NotifyPromoted, v1alpha1.NotifyRolledBack}},
		}
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(50)
		w.answer(state.Answer{Final: true, Taken: true})
		w.ready()
		w.run(30)
		w.answer(state.Answer{Final: true, Taken: true})
	}},
	{"shares of replicas instead of a router", func(w *world) {
		w.ro.Spec.Router, w.dep.replicas = v1alpha1.RouterNone, 10
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
	}},
	{"a version without a router never gets ready", func(w *world) {
		w.ro.Spec.Router, w.dep.replicas = v1alpha1.RouterNone, 10
		w.ro.Spec.ProgressDeadline = "60s"
		w.broken["v2"] = true
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a good version without a router is judged by what counts its requests", func(w *world) {
		w.ro.Spec.Router, w.ro.Spec.Analysis, w.dep.replicas = v1alpha1.RouterNone, &v1alpha1.Analysis{}, 10
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
	}},
	{"a bad version without a router is rolled back by what counts its requests", func(w *world) {
		w.ro.Spec.Router, w.ro.Spec.Analysis, w.dep.replicas = v1alpha1.RouterNone, &v1alpha1.Analysis{}, 10
		w.failures["v2"] = 20
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a version without a router waits while nothing counts its requests", func(w *world) {
		w.ro.Spec.Router, w.ro.Spec.Analysis, w.dep.replicas, w.rps = v1alpha1.RouterNone, &v1alpha1.Analysis{}, 10, 0
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonWaitingForEvidence)
		w.run(60)
		if n := w.byRevision("sv2").replicas; n != 1 {
			w.t.Errorf("%d pods of the canary without evidence", n)
		}
	}},
	{"a version without a router crashes in the middle", func(w *world) {
		w.ro.Spec.Router = v1alpha1.RouterNone
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonHolding)
		w.broken["v2"] = true
		w.byRevision("sv2").available = 0
		w.until("rolled back", w.rolledBack)
	}},
	{"the workload is scaled to zero during a release and back", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.dep.replicas = 0
		w.say("user: scales to 0")
		w.run(100)
		w.dep.replicas = 3
		w.say("user: scales to 3")
		w.ready()
	}},
	{"a quota forbids the canary's pods", func(w *world) {
		w.ro.Spec.ProgressDeadline = "60s"
		w.broken["v2"], w.quota = true, "exceeded quota: pods, requested: pods=1, used: pods=4, limited: pods=4"
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"another actor edits the split's weights", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.drift(strategy.Route{Weight: -1})
		w.ready()
	}},
	{"another actor deletes the split", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.split.deleting, w.split.lag, w.tampered, w.dirty = true, 0, true, true
		w.say("user: deletes the TrafficSplit")
		w.ready()
	}},
}

// Each release is in the history with its outcome and with what users did, the newest first.
func TestTheHistoryTellsHowEachReleaseEnded(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(w *world)
		want string
	}{
		"a user aborts, and retries later": {func(w *world) {
			w.steps(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual})
			w.ready()
			w.setTemplate("v2")
			w.untilReason(v1alpha1.ReasonWaitingForApproval)
			w.control(v1alpha1.ControlAbort, "sv2")
			w.until("rolled back", w.rolledBack)
			w.control(v1alpha1.ControlRetry, "sv2")
			w.untilReason(v1alpha1.ReasonWaitingForApproval)
			w.control(v1alpha1.ControlPromoteFull, "sv2")
			w.ready()
		}, "Promoted by [Retry PromoteFull], RolledBack by [Abort]"},
		"a newer version comes in the middle": {func(w *world) {
			w.ready()
			w.setTemplate("v2")
			w.untilWeight(50)
			w.setTemplate("v3")
			w.run(2)
			w.ready()
		}, "Promoted by [], Superseded by []"},
		"traffic moves between two Services": {func(w *world) {
			w.twoServices()
			w.behindCanary("v2", 2)
			w.untilWeight(100)
			w.untilReason(v1alpha1.ReasonStable)
		}, "Promoted by []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.tell(w)
			var got []string
			for _, h := range w.known().History {
				var did []string
				for _, i := range h.Interventions {
					did = append(did, string(i.Action))
				}
				if h.Outcome != v1alpha1.OutcomeDeployed {
					got = append(got, h.Outcome+" by ["+strings.Join(did, " ")+"]")
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("the history is %q, want %q\n%s", got, test.want, w.tail())
			}
		})
	}
}

func TestWithoutARouterTheWeightIsTheShareOfThePods(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Router, w.dep.replicas = v1alpha1.RouterNone, 4
	w.steps(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForApproval)
	if got := w.known().Weight; got == nil || got.Observed == nil || *got.Observed != 20 || w.byRevision("sv2").available != 1 {
		t.Errorf("weight %+v, want 20: 1 of 5 pods\n%s", got, w.tail())
	}
}

func (w *world) hooks(hooks ...v1alpha1.Hook) { w.ro.Spec.Hooks = hooks }

// drift is another actor's edit of the split, which the router carries out.
func (w *world) drift(r strategy.Route) {
	w.split.requested = r
	w.split.generation++
	w.split.lag = 0
	w.rv++
	w.split.version = w.rv
	w.dirty = true
	w.say("user: edits the TrafficSplit")
}

// asks is what is open with endpoints.
func (w *world) asks(d state.Decision) {
	if len(d.Questions)+len(d.Notifications)+len(w.asked) == 0 {
		return
	}
	before := w.asked
	w.asked = map[string]bool{}
	for _, q := range d.Questions {
		w.asked[q.ID] = true
	}
	for _, n := range d.Notifications {
		w.asked[n.ID] = true
	}
	for id := range w.asked {
		if !before[id] {
			w.fresh = append(w.fresh, id)
		}
	}
	slices.Sort(w.fresh)
	for _, id := range w.fresh {
		w.say("  > %s", strings.ReplaceAll(id, "-1767", "-@"))
	}
	w.fresh = nil
}

// nextTransition is when the operator says that the release goes on.
func (w *world) nextTransition() time.Time {
	if t := w.known().NextTransitionTime; t != nil {
		return t.Time
	}
	return time.Time{}
}

func TestNextTransitionTimeIsWhenTheReleaseGoesOnAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Schedule = &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: "30 3 * * *", Duration: "1m"}}}
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForSchedule)
	if want := epoch.Add(30 * time.Minute); !w.nextTransition().Equal(want) {
		t.Errorf("outside of the window: %v, want %v", w.nextTransition(), want)
	}
	w.untilWeight(10)
	w.run(1)
	if want := w.known().Step.ProgrammedAt.Add(30 * time.Second); w.nextTransition().Sub(want).Abs() > time.Second {
		t.Errorf("in a step: %v, want %v", w.nextTransition(), want)
	}
	w.run(600) // the window has closed in the middle of the step
	if want := epoch.Add(24*time.Hour + 30*time.Minute); !w.is(v1alpha1.ReasonWaitingForSchedule) || !w.nextTransition().Equal(want) {
		t.Errorf("after the window: %v, want %v", w.nextTransition(), want)
	}
	w.edit("no windows", func(s *v1alpha1.RolloutSpec) {
		s.Schedule = nil
		s.Strategy.Steps[1].Until = v1alpha1.UntilManual
	})
	w.run(1)
	if !w.is(v1alpha1.ReasonWaitingForApproval) || !w.nextTransition().IsZero() {
		t.Errorf("at a gate: %v, want none: %s", w.nextTransition(), readyMessage(w.ro))
	}
}

func TestAReleaseInProgressFinishesOutsideOfItsWindowIfItMay(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Schedule = &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: "30 3 * * *", Duration: "1m"}}, WhenClosed: v1alpha1.ClosedFinish}
	w.ready()
	w.setTemplate("v2")
	w.untilWeight(10)
	w.freeze("audit") // which holds all the same
	w.run(600)
	if !w.is(v1alpha1.ReasonWaitingForSchedule) {
		t.Fatalf("in a freeze: %s", readyMessage(w.ro))
	}
	w.freeze("")
	w.ready()
	if end := epoch.Add(50 * time.Minute); w.now.After(end) {
		t.Errorf("promoted at %v only", w.now)
	}
}

func TestAStepWaitsForItsHour(t *testing.T) {
	w := newWorld(t)
	w.steps(v1alpha1.Step{Weight: 10, Hold: "10s"}, v1alpha1.Step{Weight: 50, Hold: "10s", At: "30 9 * * *"})
	w.ro.Spec.Schedule = &v1alpha1.Schedule{TimeZone: "Europe/Berlin"}
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForSchedule)
	want := time.Date(2026, 1, 2, 8, 30, 0, 0, time.UTC)
	if !w.nextTransition().Equal(want) {
		t.Errorf("next transition %v, want %v", w.nextTransition(), want)
	}
	for w.now.Before(want) {
		w.now = w.now.Add(time.Minute)
		w.traffic()
		w.reconcile()
		if w.split.requested.Weight > 10 && w.now.Before(want) {
			t.Fatalf("weight %d at %v", w.split.requested.Weight, w.now)
		}
	}
	w.untilWeight(50)
	w.ready()
}
