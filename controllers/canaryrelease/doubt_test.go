// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Proxies have the labels of the pods: they are endpoints of the Service as soon as they
// are ready, which is before they are in its path.
func TestProxiesThatAreNotInThePathYetAreNoPodsOfSomethingElse(t *testing.T) {
	c := newCluster(t)
	c.must(c.Create(c.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Endpoints:  []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "serin-proxy-web-f7786586b-8jtmt"}}},
	}))
	c.reconcile()
	if ready := c.ready(); ready.Reason == v1alpha1.ReasonInvalidService {
		t.Errorf("%s", ready.Message)
	}
}

func TestPodsOfALongReplicaSetAreKnownByTheirNames(t *testing.T) {
	long := strings.Repeat("a", 57) + "-5d4f8c7b9d"
	if got := podsOf(long); len(got) != 58 || !strings.HasPrefix(long, got) {
		t.Errorf("%q", got)
	}
	if got := podsOf("web-5d4f"); got != "web-5d4f-" {
		t.Errorf("%q", got)
	}
}

func TestWhatAWebhookDeniesIsNotRepeated(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		tell bool
	}{
		"denied by a webhook":   {apierrors.NewForbidden(pods, "web", errors.New(`admission webhook denied: PASSWORD is "hunter2"`)), false},
		"denied with a bad one": {apierrors.NewBadRequest(`PASSWORD is "hunter2"`), false},
		"denied by no right":    {apierrors.NewForbidden(pods, "web", errors.New(`User "serin" cannot create resource "pods"`)), true},
		"not found":             {apierrors.NewNotFound(pods, "web"), true},
		"no answer":             {errors.New("connection refused"), true},
	} {
		got := safe(test.err)
		if strings.Contains(got, "hunter2") || (got == test.err.Error()) != test.tell {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOtherValuesThanThoseThatWereTriedAreNotDeployed(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	cr := c.canaryRelease()
	cr.Status.ManifestDigest = "of another canary"
	request, err := c.r.request(c.Context(), cr)
	c.must(err)
	if err := c.r.unchanged(c.Context(), cr, request); err == nil || !strings.Contains(err.Error(), "spec.config") {
		t.Errorf("%v", err)
	}
	cr.Status.ManifestDigest = "d1"
	c.must(c.r.unchanged(c.Context(), cr, request))
}

// A root Service that a user made select by one more label does not select the pods of
// stable any more: the Service of stable goes on to.
func TestTheServiceOfStableGoesOnToSelectItsPods(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	root, stable := &corev1.Service{}, &corev1.Service{}
	c.must(c.Get(c.Context(), key("web"), root))
	root.Spec.Selector["tier"] = "front"
	c.must(c.Update(c.Context(), root))
	c.run(3)
	c.must(c.Get(c.Context(), key("web-stable"), stable))
	set := &appsv1.ReplicaSet{}
	for _, rs := range c.sets() {
		if rs.Labels[revisionLabel] == stable.Spec.Selector[revisionLabel] {
			set = &rs
		}
	}
	for k, v := range stable.Spec.Selector {
		if set.Spec.Template.Labels[k] != v {
			t.Errorf("it selects by %s=%s, which its pods have not: %v", k, v, set.Spec.Template.Labels)
		}
	}
}
