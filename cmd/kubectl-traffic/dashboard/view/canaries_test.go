// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// cache is a CanaryRelease that gets a tenth of the traffic.
func cache(reason string, change ...func(*v1alpha1.CanaryRelease)) *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", Generation: 7}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Path: "web", Config: "cache: {size: 512Mi}\n"}
	if reason != "" {
		cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, Message: "A sentence.", LastTransitionTime: metav1.NewTime(begun)}}
	}
	cr.Status.Services = []v1alpha1.CanaryServiceStatus{{
		Service: "web", Programmed: true, Proxies: 2, Ports: []v1alpha1.CanaryPortStatus{{Port: "80/TCP", Weight: 10}},
		Traffic: &v1alpha1.CanaryTraffic{EndedAt: metav1.NewMicroTime(begun), Seconds: 60, Stable: v1alpha1.CanaryCounts{Requests: 900, Failures: 3}, Canary: v1alpha1.CanaryCounts{Requests: 100}},
	}}
	cr.Status.Workloads = []v1alpha1.CanaryWorkload{{Name: "web", Replicas: 1, ReadyReplicas: 1}}
	cr.Status.Later = []string{"Role/shop"}
	for _, f := range change {
		f(cr)
	}
	return cr
}

// decided is a decision, which may be carried out.
func decided(transition v1alpha1.CanaryTransition, ended bool) func(*v1alpha1.CanaryRelease) {
	return func(cr *v1alpha1.CanaryRelease) {
		cr.Spec.Transition = transition
		cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: transition, Reason: v1alpha1.ReasonRequested, Message: "A user asked for it.", Time: metav1.NewMicroTime(begun)}
		if ended {
			cr.Status.Decision.EndedAt = new(metav1.NewMicroTime(begun.Add(time.Minute)))
			cr.Status.Release = &v1alpha1.CanaryHelmRelease{Revision: 4, AdoptedRevision: 5}
		}
	}
}

func TestACanaryOfAHelmReleaseHasAllThatItsPageShows(t *testing.T) {
	sent(t, "canary", view.MakeCanary(view.CanarySources{
		Canary: cache(v1alpha1.ReasonServing), Rights: everything,
		Events: []corev1.Event{{Reason: "Serving", Type: "Normal", Message: "The canary gets its traffic.", LastTimestamp: metav1.NewTime(begun)}},
	}))
	sent(t, "canary-adopted", view.MakeCanary(view.CanarySources{Canary: cache(v1alpha1.ReasonAdopted, decided(v1alpha1.CanaryTransitionAdopted, true)), Rights: everything, Missing: []string{"The events are left out."}}))
}

func TestValuesOfASecretAreNamedAndNotShown(t *testing.T) {
	got := view.MakeCanary(view.CanarySources{Canary: cache(v1alpha1.ReasonServing, func(cr *v1alpha1.CanaryRelease) {
		cr.Spec.Config, cr.Spec.ConfigFrom = "", &v1alpha1.CanaryConfigSource{SecretKeyRef: v1alpha1.CanarySecretKey{Name: "try", Key: "values.yaml"}}
	})})
	if got.Values != "" || got.Secret != "the key values.yaml of the Secret try" {
		t.Errorf("%+v", got)
	}
}

func TestACanaryRowSaysWhatAUserHasToDoAndWhatHappensNext(t *testing.T) {
	delegated := func(cr *v1alpha1.CanaryRelease) { cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "web"} }
	gone := func(cr *v1alpha1.CanaryRelease) { cr.DeletionTimestamp = new(metav1.NewTime(begun)) }
	failed := func(cr *v1alpha1.CanaryRelease) {
		cr.Status.Conditions = append(cr.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue})
	}
	for _, test := range []struct {
		name string
		cr   *v1alpha1.CanaryRelease
		want view.Group
		next string
	}{
		{"nothing was looked at", cache(""), view.Unknown, "Serin processes it"},
		{"its pods start", cache(v1alpha1.ReasonPreparing), view.InProgress, "The canary gets its traffic"},
		{"a user decides", cache(v1alpha1.ReasonServing), view.NeedsUser, "A user adopts or deprecates it"},
		{"a Rollout decides", cache(v1alpha1.ReasonServing, delegated), view.InProgress, "The Rollout web decides"},
		{"no canary can be made", cache(v1alpha1.ReasonRefused, failed), view.Failed, "A user changes the release or the CanaryRelease"},
		{"Helm failed", cache(v1alpha1.ReasonUpgradeFailed, decided(v1alpha1.CanaryTransitionAdopted, false)), view.Failed, "A user changes the release or the CanaryRelease"},
		{"it is adopted", cache(v1alpha1.ReasonAdopting, decided(v1alpha1.CanaryTransitionAdopted, false)), view.InProgress, "The Helm release gets the canary's values"},
		{"it was adopted", cache(v1alpha1.ReasonAdopted, decided(v1alpha1.CanaryTransitionAdopted, true)), view.Stable, "Nothing"},
		{"it is deprecated", cache(v1alpha1.ReasonDeprecating, decided(v1alpha1.CanaryTransitionDeprecated, false)), view.InProgress, "The canary is removed"},
		{"it is deleted", cache(v1alpha1.ReasonServing, gone, delegated), view.InProgress, "The canary is removed"},
	} {
		if got := view.MakeCanaryRow(test.cr); got.Group != test.want || got.Next.What != test.next {
			t.Errorf("%s: %s, next: %s", test.name, got.Group, got.Next.What)
		}
	}
}

func TestACanaryIsEndedWhereTheRightAndTheStateAllowIt(t *testing.T) {
	for _, test := range []struct {
		name             string
		cr               *v1alpha1.CanaryRelease
		rights           view.Rights
		adopt, deprecate string // why not
	}{
		{"a promoter", cache(v1alpha1.ReasonServing), view.Rights{User: "jane", Promote: true, Patch: true}, "", ""},
		{"an editor", cache(v1alpha1.ReasonServing), view.Rights{User: "jane", Patch: true}, `The user jane may not promote the CanaryRelease cache in the namespace shop: ask for a role with the verbs "promote" and "patch" for "canaryreleases.serin.dev".`, "may not promote"},
		{"a viewer", cache(v1alpha1.ReasonServing), view.Rights{}, "You may not promote", "You may not promote"},
		{"rights that are not known", cache(v1alpha1.ReasonServing), view.Rights{Unknown: true}, "has not said what you may do", "has not said what you may do"},
		{"read-only", cache(v1alpha1.ReasonServing), without(func(r *view.Rights) { r.ReadOnly = true }), "--read-only", "--read-only"},
		{"the adoption is requested", cache(v1alpha1.ReasonServing, func(cr *v1alpha1.CanaryRelease) { cr.Spec.Transition = v1alpha1.CanaryTransitionAdopted }), everything, "It is requested already: spec.transition of the CanaryRelease cache is Adopted.", ""},
		{"it was adopted", cache(v1alpha1.ReasonAdopted, decided(v1alpha1.CanaryTransitionAdopted, true)), everything, "requested already", "go back with helm rollback shop 4 --namespace shop"},
		{"it is deprecated", cache(v1alpha1.ReasonDeprecating, decided(v1alpha1.CanaryTransitionDeprecated, false)), everything, "The CanaryRelease cache is deprecated", "requested already"},
	} {
		actions := view.MakeCanary(view.CanarySources{Canary: test.cr, Rights: test.rights}).Actions
		for i, want := range []string{test.adopt, test.deprecate} {
			a := actions[i]
			if !strings.Contains(a.Disabled, want) || (a.Disabled == "") != (want == "") || (a.Confirm == "") == (want == "") || a.Revision != "7" {
				t.Errorf("%s: %+v, want %q", test.name, a, want)
			}
		}
	}
}
