// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func port(number int32, protocol v1alpha1.CanaryProtocol, weight ...int32) v1alpha1.CanaryPort {
	p := v1alpha1.CanaryPort{Port: number, Protocol: protocol}
	if len(weight) > 0 {
		p.Config.Weight = &weight[0]
	}
	return p
}

func TestWantedWeights(t *testing.T) {
	service := &Service{Name: "web", Ports: []Port{{80, "TCP"}, {53, "UDP"}, {53, "TCP"}}}
	one := func(ports ...v1alpha1.CanaryPort) []v1alpha1.CanaryService {
		return []v1alpha1.CanaryService{{Service: "web", Ports: ports}}
	}
	tests := []struct {
		name     string
		services []v1alpha1.CanaryService
		want     string
	}{
		{"no Services are named: every port has the default", nil, "1 %"},
		{"the Service is named without ports: every port has the default", one(), "1 %"},
		{"another Service is named: nothing", []v1alpha1.CanaryService{{Service: "api"}}, "0 %"},
		{"a port without a weight has the default, the others nothing", one(port(80, "HTTP")), "53/TCP=0 %, 53/UDP=0 %, 80/TCP=1 %"},
		{"a weight of 0 is 0 and not the default", one(port(80, "", 0)), "0 %"},
		{"a weight of 100 is all", one(port(80, "", 100)), "53/TCP=0 %, 53/UDP=0 %, 80/TCP=100 %"},
		{"without a protocol both transports of a number are meant", one(port(53, "", 7)), "53/TCP=7 %, 53/UDP=7 %, 80/TCP=0 %"},
		{"the protocol chooses the transport", one(port(53, "UDP", 7), port(53, "TCP", 9)), "53/TCP=9 %, 53/UDP=7 %, 80/TCP=0 %"},
		{"HTTPS is carried by TCP", one(port(80, "HTTPS", 3)), "53/TCP=0 %, 53/UDP=0 %, 80/TCP=3 %"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := text(wanted(&v1alpha1.CanaryReleaseSpec{Services: test.services}, service)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestGrows(t *testing.T) {
	two := []PortWeight{{"53/UDP", 10}, {"80/TCP", 20}}
	for name, test := range map[string]struct {
		from, to []PortWeight
		want     bool
	}{
		"the same":                   {two, two, false},
		"one port more":              {two, []PortWeight{{"53/UDP", 11}, {"80/TCP", 0}}, true},
		"all less":                   {two, []PortWeight{{"53/UDP", 0}, {"80/TCP", 19}}, false},
		"a new port without traffic": {two, []PortWeight{{"53/UDP", 10}, {"80/TCP", 20}, {"90/TCP", 0}}, false},
		"a new port with traffic":    {two, []PortWeight{{"90/TCP", 1}}, true},
		"nothing known before":       {nil, []PortWeight{{"90/TCP", 1}}, true},
	} {
		if got := grows(test.from, test.to); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// observed is a world that is ready for a canary, as an Observation.
func observed(t *testing.T) Observation {
	t.Helper()
	return newWorld(t).observe()
}

func TestWhatIsRefusedSaysWhatToChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Observation)
		reason string
		says   string
	}{
		{"an older CanaryRelease tries the release", func(o *Observation) { o.Rival = "first" }, v1alpha1.ReasonConflict, `older CanaryRelease "first"`},
		{"there is no such release", func(o *Observation) { o.Release = Release{Presence: kit.Absent} }, v1alpha1.ReasonReleaseNotFound, "correct spec.release"},
		{"the revision does not exist yet", func(o *Observation) { o.Release.Newest, o.Release.Deployed = 3, 3 }, v1alpha1.ReasonReleaseNotFound, "its newest is 3"},
		{"the revision is not deployed", func(o *Observation) { o.Release.Deployed, o.Release.Status = 3, "failed" }, v1alpha1.ReasonReleaseNotDeployed, "is failed and not deployed"},
		{"config is invalid", func(o *Observation) {
			o.Proposal = Proposal{Invalid: true, Problem: "spec.path: there is no sub-chart web"}
		}, v1alpha1.ReasonInvalidSpec, "there is no sub-chart web"},
		{"a StatefulSet would change", func(o *Observation) {
			o.Proposal.Refused = []string{"StatefulSet db replaces pods in place"}
		}, v1alpha1.ReasonRefused, "StatefulSet db"},
		{"the Deployment is gone", func(o *Observation) { o.Workloads[0].Presence = kit.Absent }, v1alpha1.ReasonWorkloadNotFound, `"web"`},
		{"a Rollout manages the Deployment", func(o *Observation) { o.Workloads[0].Rollout = "web" }, v1alpha1.ReasonConflict, `Rollout "web"`},
		{"the Deployment is paused", func(o *Observation) { o.Workloads[0].Paused = true }, v1alpha1.ReasonConflict, "spec.paused"},
		{"no Service selects the pods", func(o *Observation) { o.Services = nil }, v1alpha1.ReasonRefused, "No Service selects"},
		{"a Service is headless", func(o *Observation) { o.Services[0].Problem = `the Service "web" is headless` }, v1alpha1.ReasonInvalidService, "headless"},
		{"a Service is split already", func(o *Observation) { o.Services[0].Taken = `The TrafficSplit "mine" has the Service "web"` }, v1alpha1.ReasonConflict, `"mine"`},
		{"a Service has too long a name", func(o *Observation) {
			o.Services[0].Name = strings.Repeat("w", maxName+1)
		}, v1alpha1.ReasonInvalidService, "shorter"},
		{"spec names a Service of other pods", func(o *Observation) {
			o.CanaryRelease.Spec.Services = []v1alpha1.CanaryService{{Service: "db"}}
		}, v1alpha1.ReasonInvalidSpec, `"db" selects no pods`},
		{"spec names a port that there is not", func(o *Observation) {
			o.CanaryRelease.Spec.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{port(81, "")}}}
		}, v1alpha1.ReasonInvalidSpec, "has no port 81; it has 80/TCP, 53/UDP"},
		{"spec names a port by another transport", func(o *Observation) {
			o.CanaryRelease.Spec.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{port(80, "UDP")}}}
		}, v1alpha1.ReasonInvalidSpec, "no port 80 over UDP"},
		{"spec names a port twice", func(o *Observation) {
			o.CanaryRelease.Spec.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{port(80, ""), port(80, "HTTP")}}}
		}, v1alpha1.ReasonInvalidSpec, "80/TCP of the Service \"web\" twice"},
		{"a copy's name is taken", func(o *Observation) {
			o.Copies = []Copy{{Kind: "ConfigMap", Object: kit.Object{Name: "settings-canary-1"}, Presence: kit.Present, Wanted: true}}
		}, v1alpha1.ReasonConflict, `"settings-canary-1" does not belong to this CanaryRelease`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t)
			test.change(&o)
			d := Decide(o)
			if len(d.Actions) > 0 {
				t.Errorf("it does %v", d.Actions)
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != test.reason || !strings.Contains(ready.Message, test.says) || ready.Status != "False" {
				t.Errorf("%+v", ready)
			}
			if meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionStalled) == nil {
				t.Error("it is not stalled")
			}
			if d.Status.Release != nil {
				t.Error("it counts as begun")
			}
		})
	}
}

func TestNothingIsChangedWhileSomethingIsUnknown(t *testing.T) {
	for name, change := range map[string]func(*Observation){
		"the cluster can't be read":     func(o *Observation) { o.Unreadable = "Services could not be listed" },
		"Helm's records can't be read":  func(o *Observation) { o.Release = Release{Problem: "Helm's records could not be read"} },
		"the chart can't be rendered":   func(o *Observation) { o.Proposal = Proposal{Problem: "the chart could not be rendered"} },
		"a Deployment is still rolling": func(o *Observation) { o.Workloads[0].Settled = false },
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.CanaryRelease.Finalizers = []string{v1alpha1.FinalizerCanaryRelease}
			change(&o)
			d := Decide(o)
			if len(d.Actions) > 0 || d.Status.Decision != nil || d.Status.Release != nil {
				t.Errorf("it does %v, %+v", d.Actions, d.Status)
			}
		})
	}
}

func TestACanaryHasAsManyPodsAsItsLargestWeightAsksFor(t *testing.T) {
	for _, test := range []struct {
		replicas, weight, want int32
		own                    *int32
	}{
		{4, 1, 1, nil}, {4, 0, 1, nil}, {4, 26, 2, nil}, {4, 100, 4, nil}, {10, 33, 4, nil}, {0, 50, 1, nil}, {4, 1, 3, new(int32(3))},
	} {
		w := newWorld(t)
		w.weigh(test.weight)
		w.cr.Spec.Replicas = test.own
		w.deps["web"].replicas = test.replicas
		s := &snapshot{Observation: w.observe()}
		if got := s.replicas(&s.Workloads[0], false); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
		if got := s.replicas(&s.Workloads[0], true); got != test.replicas {
			t.Errorf("%+v: an adoption has %d", test, got)
		}
	}
}

func TestACanaryThatLosesItsPodsLosesItsTraffic(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.byRevision("web-d1").available = 0
	d := Decide(w.observe())
	want := []kit.Action{ApplySplit{Service: "web", Weights: even(w.services["web"].ports, 0)}}
	if diff := cmp.Diff(want, d.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A ReplicaSet that was deleted, or that the cache lacks, is made or seen again. To end because of that
// would be for good.
func TestACanaryDoesNotEndBecauseNoVersionOfTheDeploymentIsSeen(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	o := w.observe()
	for i := range o.Workloads {
		o.Workloads[i].ReplicaSets = slices.DeleteFunc(o.Workloads[i].ReplicaSets, func(r kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment })
	}
	d := Decide(o)
	if d.Status.Decision != nil || len(d.Actions) > 0 {
		t.Errorf("decided %+v, actions %v", d.Status.Decision, d.Actions)
	}
}

func TestAnEditOfTheSplitIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.services["web"].split.requested = nil
	w.end(20)
	if got := text(w.services["web"].split.served); got != "1 %" {
		t.Errorf("it serves %s\n%s", got, w.history())
	}
}

func TestADeletedTrafficSplitIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.lossy = true
	w.services["web"].split.deleting = true
	w.run(30)
	if s := w.services["web"].split; s == nil || text(s.served) != "1 %" {
		t.Errorf("it is %+v\n%s", s, w.history())
	}
}

func TestADeletionDoesNotWaitForEverForARouter(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	o := w.observe()
	deleted := o.CanaryRelease.DeepCopy()
	now := w.cr.CreationTimestamp
	now.Time = w.now
	deleted.DeletionTimestamp = &now
	o.CanaryRelease = deleted
	o.Services[0].Split.Programmed, o.Services[0].Split.Requested = false, even(o.Services[0].Ports, 0)
	d := Decide(o)
	if len(d.Actions) > 0 || d.After != routerTimeout {
		t.Fatalf("it does %v and looks again after %s", d.Actions, d.After)
	}
	o.Now = w.now.Add(routerTimeout - time.Second)
	if d = Decide(o); len(d.Actions) > 0 || d.After != time.Second {
		t.Errorf("a second before the end it does %v and looks again after %s", d.Actions, d.After)
	}
	o.Now = w.now.Add(routerTimeout)
	d = Decide(o)
	if !slices.Equal(names(d.Actions), []string{"delete the TrafficSplit of web"}) {
		t.Errorf("it does %v", d.Actions)
	}
}

func names(actions []kit.Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.String())
	}
	return out
}

func TestAFailedUpgradeIsTriedAgainAfterAWhile(t *testing.T) {
	w := newFailedUpgrade(t)
	o := w.observe()
	o.Now = o.UpgradeFailedAt.Add(time.Second)
	d := Decide(o)
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	if len(d.Actions) > 0 || d.After != retryUpgrade-time.Second || ready.Reason != v1alpha1.ReasonUpgradeFailed || !strings.Contains(ready.Message, "a hook failed") {
		t.Errorf("%v after %s: %+v", d.Actions, d.After, ready)
	}
	o.Now = o.UpgradeFailedAt.Add(retryUpgrade)
	d = Decide(o)
	if !slices.Equal(names(d.Actions), []string{"upgrade the Helm release"}) {
		t.Errorf("it does %v", d.Actions)
	}
	if r := d.Status.Release; r.UpgradeTries != 2 || !r.LastTryAt.Equal(&metav1.MicroTime{Time: o.Now}) {
		t.Errorf("on record is %+v", r)
	}
}

func TestAnUpgradeThatTakesLongIsTriedAgainAWhileAfterItsEnd(t *testing.T) {
	w := newFailedUpgrade(t)
	o := w.observe()
	o.UpgradeFailedAt = o.CanaryRelease.Status.Release.LastTryAt.Add(5 * time.Minute)
	o.Now = o.UpgradeFailedAt
	d := Decide(o)
	if len(d.Actions) > 0 || d.After != retryUpgrade || !d.Status.Release.LastTryAt.Time.Equal(o.Now) {
		t.Errorf("it does %v after %s, on record is %+v", d.Actions, d.After, d.Status.Release)
	}
}

func TestAnUpgradeThatWaitsForItsTurnIsNoTry(t *testing.T) {
	w := newFailedUpgrade(t)
	o := w.observe()
	o.UpgradeFailure, o.UpgradeFailedAt = "", time.Time{}
	o.UpgradeWaits = "Helm upgrades others"
	tries := o.CanaryRelease.Status.Release.UpgradeTries
	early := o
	early.UpgradeTurn = true // before the next look
	if d := Decide(early); !slices.Equal(names(d.Actions), []string{"upgrade the Helm release"}) || d.Status.Release.UpgradeTries != tries {
		t.Errorf("when its turn comes at once it does %v, on record is %+v", d.Actions, d.Status.Release)
	}
	for range 3 {
		d := Decide(o)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if len(d.Actions) > 0 || ready.Reason != v1alpha1.ReasonAdopting || !strings.Contains(ready.Message, "waits for its turn: Helm upgrades others") {
			t.Errorf("it does %v and says %+v", d.Actions, ready)
		}
		if r := d.Status.Release; r.LastTryAt != nil || r.UpgradeTries != tries-1 {
			t.Errorf("on record is %+v", r)
		}
		o.CanaryRelease.Status = d.Status
	}
	o.UpgradeTurn = true
	d := Decide(o)
	if r := d.Status.Release; !slices.Equal(names(d.Actions), []string{"upgrade the Helm release"}) || r.LastTryAt == nil || r.UpgradeTries != tries {
		t.Errorf("when its turn comes it does %v, on record is %+v", d.Actions, r)
	}
}

func TestAfterARestartAFailedUpgradeIsStillToldAndWaitedFor(t *testing.T) {
	w := newFailedUpgrade(t)
	o := w.observe()
	o.UpgradeFailure, o.UpgradeFailedAt = "", time.Time{}
	o.Now = o.CanaryRelease.Status.Release.LastTryAt.Add(time.Second)
	d := Decide(o)
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	if len(d.Actions) > 0 || ready.Reason != v1alpha1.ReasonUpgradeFailed || !strings.Contains(ready.Message, "helm history shop") {
		t.Errorf("it does %v and says %+v", d.Actions, ready)
	}
	o.Now = o.CanaryRelease.Status.Release.LastTryAt.Add(-time.Hour)
	if d = Decide(o); d.After != retryUpgrade {
		t.Errorf("with a clock that went back it looks again after %s", d.After)
	}
}

func TestTriesOfAnAdoptionThatWasTakenBackAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.cr.Status.Release.UpgradeTries = 3
	at := metav1.NewMicroTime(w.now)
	w.cr.Status.Release.LastTryAt = &at
	w.run(1)
	if r := w.cr.Status.Release; r.UpgradeTries != 0 || r.LastTryAt != nil {
		t.Errorf("on record is %+v", r)
	}
}

func TestTheDecisionDoesNotChangeWhatItIsMadeFrom(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.transition(v1alpha1.CanaryTransitionDeprecated)
	o := w.observe()
	was := o.CanaryRelease.DeepCopy()
	Decide(o)
	if diff := cmp.Diff(was, o.CanaryRelease); diff != "" {
		t.Errorf("the CanaryRelease changed:\n%s", diff)
	}
}
