// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// canary is a CanaryRelease that serves: what its Rollout requested is live.
func canary(weight int32) *v1alpha1.CanaryRelease {
	return &v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Name: "try", Namespace: "shop", UID: "cr", Generation: 3},
		Spec: v1alpha1.CanaryReleaseSpec{
			Release: "shop", Version: 4, Config: "a: b", Delegation: &v1alpha1.CanaryDelegation{Rollout: "website", By: "website", Weight: &weight, ManifestDigest: "d1"},
		},
		Status: v1alpha1.CanaryReleaseStatus{
			ObservedGeneration: 3, ManifestDigest: "d1", Release: &v1alpha1.CanaryHelmRelease{Revision: 4},
			Workloads:  []v1alpha1.CanaryWorkload{{Name: "web", Replicas: 2, ReadyReplicas: 2}},
			Services:   []v1alpha1.CanaryServiceStatus{{Service: "website", Programmed: true}},
			Delegation: &v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: true},
		},
	}
}

func delegating() *v1alpha1.Rollout {
	ro := website()
	ro.Finalizers = []string{v1alpha1.Finalizer}
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: "try"}
	ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 10}}
	return ro
}

func TestWhatACanaryReleaseSaysIsTakenForItsContentOnly(t *testing.T) {
	for _, test := range []struct {
		name                string
		change              func(*v1alpha1.CanaryRelease)
		requested, observed int32
		programmed, ours    bool
	}{
		{"what was requested is live", func(*v1alpha1.CanaryRelease) {}, 20, 20, true, true},
		{"nothing was requested: that is 0", func(cr *v1alpha1.CanaryRelease) {
			cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "website"}
			cr.Status.Delegation.Weight = 0
		}, 0, 0, true, true},
		{"it was requested for other content", func(cr *v1alpha1.CanaryRelease) { cr.Status.ManifestDigest = "d2" }, 0, 20, false, true},
		{"the status is about an earlier spec", func(cr *v1alpha1.CanaryRelease) { cr.Generation = 4 }, 20, 20, false, true},
		{"another weight is on its way", func(cr *v1alpha1.CanaryRelease) { cr.Status.Delegation.Programmed = false }, 20, 20, false, true},
		{"it was taken back, since no pod can answer", func(cr *v1alpha1.CanaryRelease) { cr.Status.Delegation.Weight = 0 }, 20, 0, false, true},
		{"no status says what is live", func(cr *v1alpha1.CanaryRelease) { cr.Status.Delegation = nil }, 20, -1, false, true},
		{"it names another Rollout", func(cr *v1alpha1.CanaryRelease) { cr.Spec.Delegation.Rollout = "other" }, 0, 20, false, false},
		{"it names none", func(cr *v1alpha1.CanaryRelease) { cr.Spec.Delegation = nil }, 0, 20, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cr := canary(20)
			test.change(cr)
			got := splitOf(cr, delegating())
			if got.Requested.Weight != test.requested || got.Observed != test.observed || got.Programmed != test.programmed || got.Ours != test.ours {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestACanaryReleaseIsReadyOnlyWithAllOfItsWorkloads(t *testing.T) {
	cr := canary(20)
	if d := delegatedOf(cr); d.Ready != 2 || d.Stable != "helm-4" || !d.Held || d.Rollout != "website" {
		t.Errorf("%+v", d)
	}
	cr.Status.Workloads = append(cr.Status.Workloads, v1alpha1.CanaryWorkload{Name: "api", Replicas: 3})
	if d := delegatedOf(cr); d.Ready != 0 || d.Replicas != 5 {
		t.Errorf("with a workload that can't answer: %+v", d)
	}
	cr.Status.Workloads[1].Replicas = 0
	if d := delegatedOf(cr); d.Ready != 2 {
		t.Errorf("with a workload of earlier content: %+v", d)
	}
	cr.Status.Release.AdoptedRevision = 5
	if d := delegatedOf(cr); d.Stable != "helm-5" {
		t.Errorf("after an adoption: %+v", d)
	}
}

func TestAnotherContentOrObjectIsAnotherRevision(t *testing.T) {
	first, content, object := canary(0), canary(0), canary(0)
	content.Status.ManifestDigest, object.UID = "d2", "another"
	names := []string{delegatedOf(first).Revision, delegatedOf(content).Revision, delegatedOf(object).Revision}
	slices.Sort(names)
	if len(slices.Compact(names)) != 3 || names[0] == "" {
		t.Errorf("%q", names)
	}
}

func TestAPortThatKeepsAWeightOfItsOwnMakesTheSharesUneven(t *testing.T) {
	for _, test := range []struct {
		service string
		weights []int32
		want    bool
	}{{"website", nil, false}, {"website", []int32{20, 20}, false}, {"website", []int32{20, 0}, true}, {"db", []int32{20, 0}, false}} {
		cr := canary(20)
		for i, weight := range test.weights {
			of := &cr.Status.Services[0]
			of.Ports = append(of.Ports, v1alpha1.CanaryPortStatus{Port: fmt.Sprintf("%d/TCP", 80+i), Weight: weight})
		}
		if uneven(cr, test.service) != test.want {
			t.Errorf("%s with %v: want %v", test.service, test.weights, test.want)
		}
	}
}

func TestAServiceThatTheCanaryReleaseDoesNotShareIsNamed(t *testing.T) {
	cr := canary(20)
	if got := unshared(cr, "website"); got != "" {
		t.Errorf("%q", got)
	}
	if got := unshared(cr, "db"); !strings.Contains(got, `does not share the traffic of the Service "db"; make a Rollout for one of website`) {
		t.Errorf("%q", got)
	}
	cr.Status.Delegation = nil
	if got := unshared(cr, "db"); got != "" {
		t.Errorf("before it serves it is not known: %q", got)
	}
}

// withCanaryRelease has the CanaryRelease in a fake API server that knows nothing of its Go type: of
// that it would take fields that are empty for fields that were applied.
func withCanaryRelease(t *testing.T, cr *v1alpha1.CanaryRelease) (*Reconciler, client.Client, snapshot) {
	t.Helper()
	scheme := runtime.NewScheme()
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.KindCanaryRelease)
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(v1alpha1.GroupVersion.WithKind("CanaryReleaseList"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cr)
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: object}
	made.SetGroupVersionKind(kind)
	if err := c.Create(t.Context(), made, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(delegating(), nil)
	s.canaryRelease = live(t, c)
	return &Reconciler{client: c}, c, s
}

func live(t *testing.T, c client.Client) *v1alpha1.CanaryRelease {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindCanaryRelease))
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "try"}, object); err != nil {
		t.Fatal(err)
	}
	cr := &v1alpha1.CanaryRelease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cr); err != nil {
		t.Fatal(err)
	}
	return cr
}

func TestADelegationIsWrittenForTheContentThatWasSeenAndGivenUpAsAWhole(t *testing.T) {
	cr := canary(0)
	cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "website"}
	r, c, s := withCanaryRelease(t, cr)
	apply := func(a kit.Action) *v1alpha1.CanaryDelegation {
		t.Helper()
		s.canaryRelease = live(t, c)
		if err := r.apply(t.Context(), s, a); err != nil {
			t.Fatal(err)
		}
		return live(t, c).Spec.Delegation
	}
	if d := apply(state.SetDelegation{Weight: 30}); d == nil || d.Weight == nil || *d.Weight != 30 || d.ManifestDigest != "d1" || d.Transition != "" || d.Rollout != "website" {
		t.Errorf("a weight: %+v", d)
	}
	if d := apply(state.SetDelegation{Weight: 100, Transition: v1alpha1.CanaryTransitionAdopted}); *d.Weight != 100 || d.Transition != v1alpha1.CanaryTransitionAdopted {
		t.Errorf("a transition: %+v", d)
	}
	if d := apply(state.SetDelegation{}); d.Weight == nil || *d.Weight != 0 || d.Transition != "" {
		t.Errorf("the transition is taken back: %+v", d)
	}
	if d := apply(state.ClearDelegation{}); d == nil || d.Weight != nil || d.ManifestDigest != "" || d.Rollout != "website" {
		t.Errorf("given up: %+v", d)
	}
	if got := live(t, c).Spec.Config; got != "a: b" {
		t.Errorf("config is %q by now", got)
	}
}

func TestADelegationReplacesAWeightThatAnotherActorWrote(t *testing.T) {
	r, c, s := withCanaryRelease(t, canary(90))
	if err := r.apply(t.Context(), s, state.SetDelegation{Weight: 0}); err != nil {
		t.Fatal(err)
	}
	if w := live(t, c).Spec.Delegation.Weight; w == nil || *w != 0 {
		t.Errorf("the weight is %v", w)
	}
}

func TestADelegationThatWasDecidedAboutAFormerStateMovesNothing(t *testing.T) {
	r, c, s := withCanaryRelease(t, canary(10))
	s.canaryRelease.ResourceVersion = "0" // another actor wrote meanwhile
	if err := r.apply(t.Context(), s, state.SetDelegation{Weight: 50}); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if w := live(t, c).Spec.Delegation.Weight; *w != 10 {
		t.Errorf("the weight is %d", *w)
	}
}

// serving is a Reconciler of a Rollout of a CanaryRelease.
func serving(t *testing.T, fail func(string) error) (*Reconciler, client.Client, *[]string) {
	t.Helper()
	ro := delegating()
	ro.Generation = 1
	r, c, writes := newReconcilerOf(t, fail, objects()[2], ro, canary(0))
	r.options.CanaryReleases = true
	return r, c, writes
}

func TestARolloutWritesNothingButTheDelegationOfItsCanaryRelease(t *testing.T) {
	r, c, writes := serving(t, func(string) error { return nil })
	for range 3 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if d := live(t, c).Spec.Delegation; d.Weight == nil || *d.Weight != 10 {
		t.Errorf("%+v\n%v", d, *writes)
	}
	for _, w := range *writes {
		if !strings.HasSuffix(w, "Rollout") && !strings.HasPrefix(w, "apply") {
			t.Errorf("it wrote: %s", w)
		}
	}
}

func TestWithoutCanaryReleasesARolloutOfOneIsRefused(t *testing.T) {
	r, c, _ := serving(t, func(string) error { return nil })
	r.options.CanaryReleases = false
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	ro := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || !strings.Contains(ready.Message, "this operator serves no CanaryReleases") {
		t.Errorf("%+v", ready)
	}
}

func TestACanaryReleaseThatCantBeReadDecidesNothing(t *testing.T) {
	r, _, writes := serving(t, func(call string) error {
		if call == "get CanaryRelease" {
			return errInjected
		}
		return nil
	})
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, errInjected) {
		t.Errorf("error %v: it must be tried again", err)
	}
	if got := fmt.Sprint(*writes); got != "[update status Rollout]" {
		t.Errorf("written: %s", got)
	}
}

func TestTheSplitOfACanaryReleaseIsMeasured(t *testing.T) {
	ro := delegating()
	ro.Spec.Service = "shop-web"
	of := func(ro *v1alpha1.Rollout) analysis.Subject {
		s := snapshot{Observation: state.Observation{Rollout: ro}}
		got, measured := s.subject(&ro.Status)
		if !measured {
			t.Error("not measured")
		}
		return got
	}
	if got := of(ro); got.Split != "shop-web" || got.Stable != "shop-web-stable" || got.Canary != "shop-web-canary" {
		t.Errorf("%+v", got)
	}
	if got := of(website()); got.Split != "website" || got.Stable != "website-stable" {
		t.Errorf("of a Deployment: %+v", got)
	}
}

func TestARolloutIsFoundByItsCanaryRelease(t *testing.T) {
	if got := claims(delegating()); !slices.Equal(got, []string{"CanaryRelease/try", "Service/website"}) {
		t.Errorf("%q", got)
	}
}
