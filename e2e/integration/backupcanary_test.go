// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// restoredCanary is a backup of a namespace with a CanaryRelease that was restored.
type restoredCanary struct {
	*canaryStage
	*history
}

// restoreCanary restores the namespace of the play in another one, or in one of the same name after
// the namespace was deleted. From the moment at which some pod answers behind the Service, one
// always does. What is done before it is backed up is done without an operator.
func (p *canaryStage) restoreCanary(mode restoreMode, sameName bool, before ...func()) *restoredCanary {
	p.Helper()
	for _, f := range before {
		for _, o := range p.operators {
			o.stop(p.T)
		}
		f()
	}
	objects := p.backup()
	q := &restoredCanary{canaryStage: &canaryStage{chart: p.chart}}
	if sameName {
		p.deleteNamespace()
	}
	for _, o := range p.operators {
		o.stop(p.T)
	}
	s := &scene{T: p.T, reader: admin}
	if sameName {
		s.namespace = p.namespace
		s.eventually("the namespace is made again", func(ctx context.Context) bool {
			return admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}) == nil
		})
	} else {
		s = newScene(p.T)
	}
	q.helmScene, q.history = helmIn(s), record(s)
	p.Cleanup(q.checkAnswers)
	s.serveProxies()
	if mode.running {
		s.startOperator(newMeasurements(), withCanaries)
	}
	s.restore(objects, mode)
	if !mode.running {
		s.startOperator(newMeasurements(), withCanaries)
	}
	return q
}

// checkAnswers is a test's last check: some pod has always answered behind the Service since the
// first one did.
func (q *restoredCanary) checkAnswers() {
	q.Helper()
	if problem := q.unanswered(q.chart); problem != "" {
		q.Error(problem)
	}
	if q.Failed() {
		q.Logf("what happened:\n%s", q.history)
	}
}

// checkNothingIsLeft waits until the objects that a canary needs are those of the present
// CanaryRelease, and the objects of users are those of before.
func (q *restoredCanary) checkNothingIsLeft(users []string) {
	q.Helper()
	cr := q.canary()
	q.eventually("a pod answers behind the Service", func(context.Context) bool {
		_, ever := q.first(func(w world) bool { return w.answers(q.chart) })
		return ever
	})
	q.eventually("nothing is left of the CanaryRelease of the backup", func(ctx context.Context) bool { return len(q.earlier(ctx, cr)) == 0 })
	var have []string
	for name := range q.things() {
		if !strings.HasPrefix(name, "*v1.Secret/sh.helm.") {
			have = append(have, name)
		}
	}
	for _, name := range users {
		if !slices.Contains(have, name) {
			q.Errorf("%s is gone", name)
		}
	}
	if q.deploymentOf().Spec.Paused {
		q.Error("the Deployment is paused")
	}
}

func (q *restoredCanary) deploymentOf() *appsv1.Deployment {
	q.Helper()
	return q.get(q.Context(), q.chart, &appsv1.Deployment{}).(*appsv1.Deployment)
}

// earlier are the objects that were made for another CanaryRelease than the present one, and which
// nothing else owns.
func (q *restoredCanary) earlier(ctx context.Context, cr *v1alpha1.CanaryRelease) (left []string) {
	q.Helper()
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &splitv1.TrafficSplitList{}, &appsv1.ReplicaSetList{}} {
		if err := admin.List(ctx, list, client.InNamespace(q.namespace), client.MatchingLabels{v1alpha1.LabelCanaryRelease: "try"}); err != nil {
			q.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			c := metav1.GetControllerOf(o)
			owned := c != nil && c.Kind == "Deployment" // as one of its versions without pods
			if o.GetAnnotations()[v1alpha1.AnnotationCanaryReleaseUID] != string(cr.UID) && !owned {
				left = append(left, fmt.Sprintf("%T %s", o, o.GetName()))
			}
			return nil
		}); err != nil {
			q.Fatal(err)
		}
	}
	return left
}

// canaryStates are those in which a CanaryRelease is backed up, and what is of it after the restore.
var canaryStates = map[string]struct {
	reach func(*canaryStage)
	// check waits until the restored one is as it is to be.
	check func(*restoredCanary)
}{
	"with a weight": {
		reach: func(p *canaryStage) { p.try("color: red\npassword: changed"); p.weigh(80, 60) },
		check: func(q *restoredCanary) {
			q.until("the weight is live again", func(s *v1alpha1.CanaryReleaseStatus) bool {
				return reasonIs(v1alpha1.ReasonServing)(s) && len(s.Services) == 1 && s.Services[0].Programmed && s.Services[0].Ports[0].Weight == 60 && len(s.Copies) == 2
			})
		},
	},
	"without traffic": {
		reach: func(p *canaryStage) { p.try("color: red"); p.weigh(80, 0) },
		check: func(q *restoredCanary) {
			q.until("it is served", func(s *v1alpha1.CanaryReleaseStatus) bool {
				return reasonIs(v1alpha1.ReasonServing)(s) && len(s.Services) == 1 && s.Services[0].Ports[0].Weight == 0
			})
		},
	},
	"refused": {
		reach: func(p *canaryStage) {
			p.create(&v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: v1alpha1.CanaryReleaseSpec{Release: p.chart, Version: 7, Config: "color: red"}})
			p.until("it is refused", reasonIs(v1alpha1.ReasonReleaseNotFound))
		},
		check: func(q *restoredCanary) { q.until("it is refused", reasonIs(v1alpha1.ReasonReleaseNotFound)) },
	},
	"deprecated": {
		reach: func(p *canaryStage) {
			p.try("color: red")
			p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionDeprecated })
			p.until("it has ended", hasEnded)
		},
		check: func(q *restoredCanary) {
			q.until("it has ended", func(s *v1alpha1.CanaryReleaseStatus) bool {
				return hasEnded(s) && reasonIs(v1alpha1.ReasonDeprecated)(s)
			})
			q.checkHistory("deployed Install complete")
		},
	},
	"adopted": {
		reach: func(p *canaryStage) {
			p.try("color: red")
			p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
			p.until("it has ended", hasEnded)
		},
		check: func(q *restoredCanary) {
			q.until("it is adopted", func(s *v1alpha1.CanaryReleaseStatus) bool { return hasEnded(s) && reasonIs(v1alpha1.ReasonAdopted)(s) })
			q.checkHistory("superseded Install complete", "deployed Canary release try adopted")
		},
	},
}

// checkHistory: Helm has these records, as before.
func (q *restoredCanary) checkHistory(want ...string) {
	q.Helper()
	if diff := cmp.Diff(want, q.helmScene.history(q.chart)); diff != "" {
		q.Errorf("Helm's records (-want +got):\n%s", diff)
	}
}

// TestABackupOfACanaryReleaseThatIsRestoredIsServedOrEndsAsItHad, in another namespace and after its
// namespace was deleted: the canary is made again, with the weights of the spec; what had ended
// stays so; and nothing that was made for the one of the backup is left.
func TestABackupOfACanaryReleaseThatIsRestoredIsServedOrEndsAsItHad(t *testing.T) {
	t.Parallel()
	for name, state := range canaryStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restoredWays(t, []bool{false, true}, func(t *testing.T, mode restoreMode, sameName bool) {
				p := newCanaryStage(t, "hpa", withCanaries)
				users := slices.Sorted(maps.Keys(p.things()))
				state.reach(p)
				q := p.restoreCanary(mode, sameName)
				state.check(q)
				q.checkNothingIsLeft(users)
			})
		})
	}
}

// restoredWays are how a namespace with a CanaryRelease is restored. Where something is done before the
// backup, no operator is there that could end the deletion of the namespace.
func restoredWays(t *testing.T, sameNames []bool, play func(t *testing.T, mode restoreMode, sameName bool)) {
	t.Helper()
	for _, sameName := range sameNames {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("in the same namespace %t, while an operator runs %t", sameName, running), func(t *testing.T) {
				t.Parallel()
				play(t, restoreMode{running: running}, sameName)
			})
		}
	}
}

// TestACanaryReleaseThatWasRestoredIsAdoptedAndDeprecatedAsAnyOther.
func TestACanaryReleaseThatWasRestoredIsAdoptedAndDeprecatedAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, transition := range []v1alpha1.CanaryTransition{v1alpha1.CanaryTransitionAdopted, v1alpha1.CanaryTransitionDeprecated} {
		t.Run(string(transition), func(t *testing.T) {
			t.Parallel()
			restoredWays(t, []bool{false, true}, func(t *testing.T, mode restoreMode, sameName bool) {
				p := newCanaryStage(t, "hpa", withCanaries)
				users := slices.Sorted(maps.Keys(p.things()))
				p.try("color: red")
				p.weigh(80, 40)
				q := p.restoreCanary(mode, sameName)
				q.until("it is served again", reasonIs(v1alpha1.ReasonServing))
				q.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = transition })
				q.until("it has ended", hasEnded)
				want := map[v1alpha1.CanaryTransition]string{v1alpha1.CanaryTransitionAdopted: "red", v1alpha1.CanaryTransitionDeprecated: "blue"}[transition]
				if c := q.get(t.Context(), "hpa-settings", &corev1.ConfigMap{}).(*corev1.ConfigMap); c.Data["color"] != want {
					t.Errorf("the release has %v", c.Data)
				}
				if diff := cmp.Diff(users, slices.Sorted(maps.Keys(q.things()))); diff != "" {
					t.Errorf("other objects are there (-before +after):\n%s", diff)
				}
				q.checkNothingIsLeft(users)
			})
		})
	}
}

// TestADeploymentThatWasHeldForAnUpgradeByHelmIsNotPausedAfterARestore: the backup was made after the
// canary had all traffic and before Helm was called, or after its upgrade.
func TestADeploymentThatWasHeldForAnUpgradeByHelmIsNotPausedAfterARestore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reach func(*canaryStage)
		want  v1alpha1.Reason
	}{
		"before Helm was called": {
			reach: func(p *canaryStage) { p.try("maxmemory: 128mb"); p.weigh(6379, 100) },
			want:  v1alpha1.ReasonServing,
		},
		"after Helm has upgraded": {
			reach: func(p *canaryStage) {
				p.try("maxmemory: 128mb")
				p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
				p.until("it has ended", hasEnded)
			},
			want: v1alpha1.ReasonAdopted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restoredWays(t, []bool{false}, func(t *testing.T, mode restoreMode, sameName bool) {
				p := newCanaryStage(t, "tcp", withCanaries)
				users := slices.Sorted(maps.Keys(p.things()))
				test.reach(p)
				q := p.restoreCanary(mode, sameName, func() {
					hold := applyappsv1.Deployment(p.chart, p.namespace).WithSpec(applyappsv1.DeploymentSpec().WithPaused(true))
					if err := admin.Apply(t.Context(), hold, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease), client.ForceOwnership); err != nil {
						t.Fatal(err)
					}
				})
				q.until("it goes on", reasonIs(test.want))
				q.eventually("the Deployment is not paused", func(context.Context) bool { return !q.deploymentOf().Spec.Paused })
				q.checkNothingIsLeft(users)
			})
		})
	}
}

// TestAnAdoptionThatFailedIsDeprecatedInARestoredBackup, as that of another user is: an upgrade without
// a canary is not what the CanaryRelease asks for.
func TestAnAdoptionThatFailedIsDeprecatedInARestoredBackup(t *testing.T) {
	t.Parallel()
	restoredWays(t, []bool{false}, func(t *testing.T, mode restoreMode, sameName bool) {
		p := newCanaryStage(t, "tcp", withCanaries)
		users, before := slices.Sorted(maps.Keys(p.things())), p.args()
		p.try("maxmemory: 128mb")
		p.mayNotUpgrade()
		p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
		p.until("the upgrade fails", reasonIs(v1alpha1.ReasonUpgradeFailed))
		q := p.restoreCanary(mode, sameName, func() {
			p.revoke()
			p.optIn(p.chart)
		})
		q.until("it is deprecated", func(s *v1alpha1.CanaryReleaseStatus) bool {
			return hasEnded(s) && reasonIs(v1alpha1.ReasonDeprecated)(s)
		})
		if got := q.args(); got != before {
			t.Errorf("the Deployment has %s", got)
		}
		q.eventually("all pods are those of before", func(context.Context) bool {
			versions := q.versions()
			return len(versions) == 1 && len(versions[before]) == canaryPods
		})
		q.checkNothingIsLeft(users)
	})
}

// tryDelegated begins the release of a CanaryRelease by a Rollout, whose steps wait for approval.
func tryDelegated(t *testing.T) *canaryStage {
	t.Helper()
	p := newCanaryStage(t, "tcp", withCanaries)
	ro := newRollout(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 60, Until: v1alpha1.UntilManual})
	ro.Spec.Service = p.chart
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: "try"}
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "try"}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: p.chart, Version: 1, Config: "maxmemory: 128mb", Delegation: &v1alpha1.CanaryDelegation{Rollout: ro.Name}}
	p.create(ro, cr)
	p.inStep(0)
	return p
}

// inStep waits until a Rollout waits in a step whose weight is live.
func (s *scene) inStep(index int32) {
	s.Helper()
	s.eventually("the weight of the step is live", func(context.Context) bool {
		st := s.rollout().Status.Step
		_, reason, _ := ready(s.rollout())
		return st != nil && st.Index == index && st.ProgrammedAt != nil && reason == v1alpha1.ReasonWaitingForApproval
	})
}

// TestARolloutOfACanaryReleaseBeginsAtItsFirstStepAfterARestore, also where the release had been rolled
// back: what a Rollout decides is about the content of one CanaryRelease. That it was promoted is known by
// Helm's record.
func TestARolloutOfACanaryReleaseBeginsAtItsFirstStepAfterARestore(t *testing.T) {
	t.Parallel()
	over := func(p *canaryStage, decision v1alpha1.ControlAction) {
		p.decide(decision)
		p.until("it has ended", hasEnded)
	}
	for name, test := range map[string]struct {
		reach func(*canaryStage)
		check func(*restoredCanary)
	}{
		"in a step": {
			reach: func(p *canaryStage) { p.decide(v1alpha1.ControlPromote); p.inStep(1) },
			check: func(q *restoredCanary) {
				q.inStep(0)
				q.decide(v1alpha1.ControlPromote)
				q.inStep(1)
				q.decide(v1alpha1.ControlPromoteFull)
				q.waitReason(v1alpha1.ReasonStable)
				q.until("it is adopted", func(s *v1alpha1.CanaryReleaseStatus) bool { return hasEnded(s) && reasonIs(v1alpha1.ReasonAdopted)(s) })
			},
		},
		"rolled back": {
			reach: func(p *canaryStage) { over(p, v1alpha1.ControlAbort) },
			check: func(q *restoredCanary) {
				q.inStep(0)
				q.decide(v1alpha1.ControlAbort)
				q.until("it has ended", func(s *v1alpha1.CanaryReleaseStatus) bool {
					return hasEnded(s) && reasonIs(v1alpha1.ReasonDeprecated)(s)
				})
				q.waitReason(v1alpha1.ReasonRolledBack)
			},
		},
		"promoted": {
			reach: func(p *canaryStage) { over(p, v1alpha1.ControlPromoteFull) },
			check: func(q *restoredCanary) {
				q.until("it has ended", func(s *v1alpha1.CanaryReleaseStatus) bool { return hasEnded(s) && reasonIs(v1alpha1.ReasonAdopted)(s) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restoredWays(t, []bool{false}, func(t *testing.T, mode restoreMode, sameName bool) {
				p := tryDelegated(t)
				test.reach(p)
				q := p.restoreCanary(mode, sameName)
				test.check(q)
				q.checkNothingIsLeft(nil)
			})
		})
	}
}
