// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/traffic"
)

func previewService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "preview", Namespace: "shop", Annotations: map[string]string{"owner": "a user"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "website"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func leading(name, pod string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod}}},
	}
}

func TestThePreviewServiceIsNarrowedAndRestored(t *testing.T) {
	ro, all := released()
	ro.Spec.Strategy.BlueGreen = &v1alpha1.BlueGreen{PreviewService: "preview"}
	all = append(all, previewService(), leading("preview", "pod-1"), leading("website-canary", "pod-2"))
	r, c, _ := newReconcilerOf(t, func(string) error { return nil }, all...)
	look := func() snapshot {
		t.Helper()
		s, err := r.observe(t.Context(), ro)
		if err != nil || s.Preview.Presence != kit.Present || s.Preview.Problem != "" {
			t.Fatalf("error %v, preview %+v", err, s.Preview)
		}
		return s
	}
	live := func() *corev1.Service {
		t.Helper()
		svc := &corev1.Service{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "preview"}, svc); err != nil {
			t.Fatal(err)
		}
		return svc
	}
	s := look()
	if s.Preview.Revision != "" {
		t.Errorf("it leads to %q before anything was written", s.Preview.Revision)
	}
	if err := r.apply(t.Context(), s, state.PointPreview{Object: s.Preview.Object, Revision: "2"}); err != nil {
		t.Fatal(err)
	}
	if got, want := live().Spec.Selector, map[string]string{"app": "website", "pod-template-hash": "2"}; !maps.Equal(got, want) {
		t.Errorf("selector %v", got)
	}
	narrowed := look()
	if p := narrowed.Preview; p.Revision != "2" || p.Confirmed || p.Since.Before(s.Now) {
		t.Errorf("observed %+v", p)
	}
	if err := r.apply(t.Context(), s, state.PointPreview{Object: s.Preview.Object}); err == nil {
		t.Error("a write went through that was decided from an older version")
	}
	slice := leading("preview", "")
	err := c.Get(t.Context(), client.ObjectKeyFromObject(slice), slice)
	slice.Endpoints = leading("preview", "pod-2").Endpoints
	if err := errors.Join(err, c.Update(t.Context(), slice)); err != nil {
		t.Fatal(err)
	}
	if p := look().Preview; !p.Confirmed {
		t.Errorf("its endpoints are the canary's: %+v", p)
	}
	if err := r.apply(t.Context(), narrowed, state.PointPreview{Object: narrowed.Preview.Object}); err != nil {
		t.Fatal(err)
	}
	svc := live()
	if _, left := svc.Annotations[traffic.AnnotationPin]; left || svc.Annotations["owner"] != "a user" || !maps.Equal(svc.Spec.Selector, map[string]string{"app": "website"}) {
		t.Errorf("restored: %v, %v", svc.Annotations, svc.Spec.Selector)
	}
}

func TestAServiceThatCannotBeAPreviewSaysWhy(t *testing.T) {
	pinned := func(pin traffic.Pin) func(*corev1.Service) {
		return func(s *corev1.Service) {
			if err := traffic.SetPin(s, pin); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := map[string]string{"pod-template-hash": "1"}
	tests := map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"it has no pods":              {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }, "of type ExternalName"},
		"it selects others":           {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }, "does not select the pods"},
		"a selector of Argo Rollouts": {func(s *corev1.Service) { s.Spec.Selector["rollouts-pod-template-hash"] = "1" }, "does not select the pods"},
		"it has no selector":          {func(s *corev1.Service) { s.Spec.Selector = nil }, "does not select the pods"},
		"it is a root Service":        {pinned(traffic.Pin{Split: "other", Keys: keys}), "is the root Service of the TrafficSplit \"other\""},
		"it is another one's preview": {pinned(traffic.Pin{Rollout: "other", Keys: keys}), "is still the preview of the Rollout \"other\""},
		"it is this one's":            {pinned(traffic.Pin{Rollout: "website", Keys: keys}), ""},
		"nothing":                     {func(*corev1.Service) {}, ""},
	}
	ro, all := released()
	ro.Spec.Strategy.BlueGreen = &v1alpha1.BlueGreen{PreviewService: "preview"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			svc := previewService()
			test.change(svc)
			r, _, _ := newReconcilerOf(t, func(string) error { return nil }, append(append([]client.Object{}, all...), svc)...)
			s, err := r.observe(t.Context(), ro)
			if err != nil || (s.Preview.Problem == "") != (test.want == "") || !strings.Contains(s.Preview.Problem, test.want) {
				t.Errorf("error %v, problem %q", err, s.Preview.Problem)
			}
		})
	}
}

func TestAPreviewServiceOfARolloutThatIsGoneIsRestored(t *testing.T) {
	svc := previewService()
	if err := traffic.SetPin(svc, traffic.Pin{Rollout: "website", Keys: map[string]string{"pod-template-hash": "2"}}); err != nil {
		t.Fatal(err)
	}
	if got := rolloutByPreview(t.Context(), svc); len(got) != 1 || got[0] != request {
		t.Errorf("its events lead to %v", got)
	}
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, append(objects()[:3], svc)...)
	if all := settled(t, r, c, writes); len(all) != 1 {
		t.Errorf("written: %v", all)
	}
	err := c.Get(t.Context(), client.ObjectKeyFromObject(svc), svc)
	if _, left := svc.Spec.Selector["pod-template-hash"]; left || err != nil {
		t.Errorf("error %v, selector %v", err, svc.Spec.Selector)
	}
}

func TestAPreviewServiceThatCannotBeReadIsNotAbsent(t *testing.T) {
	ro, all := released()
	ro.Spec.Strategy.BlueGreen = &v1alpha1.BlueGreen{PreviewService: "preview"}
	for _, call := range []string{"list ServiceList", "list EndpointSliceList"} {
		svc := previewService()
		if err := traffic.SetPin(svc, traffic.Pin{Rollout: "website", Keys: map[string]string{"pod-template-hash": "2"}}); err != nil {
			t.Fatal(err)
		}
		r, _, _ := newReconcilerOf(t, func(got string) error {
			if got == call {
				return errInjected
			}
			return nil
		}, append(append([]client.Object{}, all...), svc)...)
		if s, err := r.observe(t.Context(), ro); !errors.Is(err, errInjected) || s.Unreadable == "" {
			t.Errorf("%s: error %v", call, err)
		}
	}
}
