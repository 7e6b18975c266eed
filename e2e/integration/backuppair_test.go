// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// The two Services of a pair, and the Deployments behind them.
const (
	firstService  = "website-v1"
	secondService = "website-v2"
)

// behind is the Deployment whose pods a Service of the pair selects.
func behind(service, image string) *appsv1.Deployment {
	d := deployment("website", 2)
	d.Name = service
	d.Spec.Template.Labels["version"], d.Spec.Selector.MatchLabels = service, map[string]string{"version": service}
	d.Spec.Template.Spec.Containers[0].Image = image
	return d
}

// beginPair plays until the first of two Services has all traffic, and nothing is behind the second.
func beginPair(t *testing.T) *stage {
	t.Helper()
	s := newScene(t)
	p := &stage{scene: s, history: record(s), time: newMeasurements(), promise: promise{keeps: 2}}
	ro := newRollout(v1alpha1.Step{Weight: 20, Hold: "1h"}, v1alpha1.Step{Weight: 60, Hold: "1h"})
	ro.Spec.WorkloadRef, ro.Spec.Services = v1alpha1.WorkloadReference{}, &v1alpha1.ServicePair{Stable: firstService, Canary: secondService}
	for _, name := range []string{firstService, secondService} {
		svc := service("website")
		svc.Name, svc.Spec.Selector["version"] = name, name
		s.create(svc)
	}
	s.create(behind(firstService, imageV1), service("website"), ro)
	s.serveProxies()
	p.operator = s.startOperator(p.time)
	s.waitReason(v1alpha1.ReasonStable)
	p.waitKept()
	p.begun = p.moment()
	t.Cleanup(p.checkPromise)
	return p
}

// tryPair has all pods of v2 behind the second Service in one go, since the release begins with the
// first one, and waits until they get their first share.
func (p *stage) tryPair() {
	p.Helper()
	leadTo := func(version string) {
		change(p.scene, secondService, &corev1.Service{}, func(s *corev1.Service) { s.Spec.Selector["version"] = version })
	}
	leadTo("none")
	p.create(behind(secondService, imageV2))
	p.eventually("the pods are available", func(ctx context.Context) bool {
		d, ok := p.get(ctx, secondService, &appsv1.Deployment{}).(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas == 2
	})
	leadTo(secondService)
	p.pairAt(0, 20)
}

// pairAt waits until the weight of a step is live.
func (p *stage) pairAt(step, weight int32) {
	p.Helper()
	p.eventually("the weight of the step is live", func(context.Context) bool {
		st := p.rollout().Status.Step
		if st == nil || st.Index != step || p.weightOfSecond() != weight {
			return false
		}
		if st.ProgrammedAt == nil {
			p.pass(5 * time.Second)
		}
		return st.ProgrammedAt != nil
	})
}

// weightOfSecond is the live weight of the second Service, or -1 while no split reports any.
func (p *stage) weightOfSecond() int32 {
	p.Helper()
	for _, b := range p.splitStatus().Backends {
		if b.Service == secondService {
			return b.Weight
		}
	}
	return -1
}

// promotePair lets time go by until the second Service is promoted.
func (p *stage) promotePair() {
	p.Helper()
	p.pass(time.Hour)
	p.pairAt(1, 60)
	p.pass(time.Hour)
	p.waitPromoted()
}

func (p *stage) waitPromoted() {
	p.Helper()
	p.eventually("the second Service is promoted", func(context.Context) bool {
		st := p.rollout().Status
		is, reason, _ := ready(p.rollout())
		return is && reason == v1alpha1.ReasonStable && st.Stable != nil && st.Stable.Service == secondService && p.weightOfSecond() == 100
	})
	p.waitKept()
}

// restoredPair restores a backup of a pair in another namespace. From the moment at which some pod
// answers behind the root Service, one always does; and so it is behind each Service that gets a share,
// from when one answers behind all of these.
func (p *stage) restoredPair(mode restoreMode) *stage {
	p.Helper()
	return p.restoredPairWith(mode, func(*unstructured.Unstructured) bool { return false })
}

// restoredPairWith leaves objects out of the restore.
func (p *stage) restoredPairWith(mode restoreMode, except func(*unstructured.Unstructured) bool) *stage {
	p.Helper()
	p.operator.stop(p.T)
	objects := slices.DeleteFunc(p.backup(), except)
	s := newScene(p.T)
	q := &stage{scene: s, history: record(s), time: newMeasurements(), promise: promise{keeps: 1}}
	p.Cleanup(q.checkPromise)
	p.Cleanup(func() {
		if problem := q.unanswered("website"); problem != "" {
			p.Error(problem)
		}
		q.begun, _ = q.keptFrom()
	})
	s.serveProxies()
	if mode.running {
		q.operator = s.startOperator(q.time)
	}
	s.restore(objects, mode)
	if !mode.running {
		q.operator = s.startOperator(q.time)
	}
	return q
}

// first is the version of the store at which a world first was as it is wanted; the last one while none
// has been.
func (h *history) first(wanted func(world) bool) (from uint64, ever bool) {
	w := world{}
	for _, m := range h.sorted() {
		w.apply(m)
		if from = m.version; wanted(w) {
			return from, true
		}
	}
	return from, false
}

// unanswered says from when on no pod answers behind a Service, after the first one did; "" when one
// always does.
func (h *history) unanswered(service string) string {
	w, answers := world{}, false
	for _, m := range h.sorted() {
		w.apply(m)
		if answers && w.ready(service) == 0 {
			return fmt.Sprintf("no pod answers behind the Service %s from version %d of the store on", service, m.version)
		}
		answers = answers || w.answers(service)
	}
	if !answers {
		return fmt.Sprintf("no pod ever answers behind the Service %s", service)
	}
	return ""
}

// keptFrom is the version of the store from which on the promise is to be kept: at which pods first
// answered behind the root Service and behind each that gets a share.
func (p *stage) keptFrom() (from uint64, ever bool) {
	return p.first(func(w world) bool { return w.answers("website") && w.broken(p.promise) == "" })
}

// waitKept waits until pods have answered behind each Service that gets a share.
func (p *stage) waitKept() {
	p.Helper()
	p.eventually("pods answer behind each Service that gets a share", func(context.Context) bool {
		_, ever := p.keptFrom()
		return ever
	})
}

// largestShare is the largest weight that a Service was to have until now.
func (p *stage) largestShare(service string) (most int32) {
	p.Helper()
	p.caughtUp()
	for _, m := range p.sorted() {
		split, ok := m.object.(*splitv1.TrafficSplit)
		if !ok {
			continue
		}
		for _, b := range split.Spec.Backends {
			if b.Service == service {
				most = max(most, b.Weight)
			}
		}
	}
	return most
}

// TestABackupOfTwoServicesBetweenReleasesThatIsRestoredIsStable, and a version behind the second one
// is released by the steps.
func TestABackupOfTwoServicesBetweenReleasesThatIsRestoredIsStable(t *testing.T) {
	t.Parallel()
	for _, mode := range restoreModes() {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			q := beginPair(t).restoredPair(mode)
			q.waitReason(v1alpha1.ReasonStable)
			q.waitKept()
			if st := q.rollout().Status.Stable; st == nil || st.Service != firstService {
				t.Errorf("stable is %+v", st)
			}
			q.tryPair()
			q.promotePair()
		})
	}
}

// TestABackupOfTwoServicesInTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep, also where the
// version was rolled back: no object says that but the record.
func TestABackupOfTwoServicesInTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*stage){
		"in the second step": func(p *stage) {
			p.pass(time.Hour)
			p.pairAt(1, 60)
		},
		"rolled back": func(p *stage) {
			p.decide(v1alpha1.ControlAbort)
			p.waitReason(v1alpha1.ReasonRolledBack)
		},
	} {
		for _, mode := range restoreModes() {
			t.Run(name+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				p := beginPair(t)
				p.tryPair()
				reach(p)
				q := p.restoredPair(mode)
				q.pairAt(0, 20)
				q.promotePair()
			})
		}
	}
}

// TestTwoServicesOfWhichTheSecondWasPromotedKeepItsTrafficAfterARestore, whatever became of the pods
// of the first.
func TestTwoServicesOfWhichTheSecondWasPromotedKeepItsTrafficAfterARestore(t *testing.T) {
	t.Parallel()
	for name, retire := range map[string]func(*stage){
		"the old version is kept": func(*stage) {},
		"the old version is scaled to zero": func(p *stage) {
			change(p.scene, firstService, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
			p.eventually("its pods are gone", func(context.Context) bool { return len(p.pods()[imageV1]) == 0 })
		},
		"the old version is deleted": func(p *stage) {
			p.delete(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: firstService}})
			p.eventually("its pods are gone", func(context.Context) bool { return len(p.pods()[imageV1]) == 0 })
		},
		"its Service is deleted too": func(p *stage) {
			svc := service(firstService)
			svc.Namespace = p.namespace
			p.delete(svc)
			p.delete(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: firstService}})
			p.eventually("its pods are gone", func(context.Context) bool { return len(p.pods()[imageV1]) == 0 })
		},
	} {
		for _, mode := range restoreModes() {
			t.Run(name+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				p := beginPair(t)
				p.tryPair()
				p.promotePair()
				retire(p)
				p.begun = p.moment() // the check goes by pods that may go now
				q := p.restoredPair(mode)
				q.waitPromoted()
				if most := q.largestShare(firstService); most > 0 {
					t.Errorf("the Service that was replaced was to have %d %% of the traffic", most)
				}
			})
		}
	}
}

// TestARolloutOfTwoServicesWaitsForTheSplitOfABackup for ten minutes, since only that says which of them
// has the traffic. Where there is none, the Service that the spec calls stable has it.
func TestARolloutOfTwoServicesWaitsForTheSplitOfABackup(t *testing.T) {
	t.Parallel()
	p := beginPair(t)
	q := p.restoredPairWith(restoreMode{running: true}, func(o *unstructured.Unstructured) bool { return o.GetKind() == "TrafficSplit" })
	q.waitReason(v1alpha1.ReasonPreparing)
	if _, _, message := ready(q.rollout()); q.splitStatus().Backends != nil {
		t.Errorf("it has made a split, and says %s", message)
	}
	q.pass(10 * time.Minute)
	q.waitReason(v1alpha1.ReasonStable)
	q.waitKept()
}
