// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/traffic"
)

func selecting(pairs ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		s.Spec.Selector[pairs[i]] = pairs[i+1]
	}
	return s
}

func TestAPinIsSetMovedAndRemoved(t *testing.T) {
	s := selecting("app", "web", traffic.LabelProxy, "p")
	for _, step := range []struct{ pin, want map[string]string }{
		{map[string]string{"version": "1"}, map[string]string{"app": "web", traffic.LabelProxy: "p", "version": "1"}},
		{map[string]string{"hash": "2"}, map[string]string{"app": "web", traffic.LabelProxy: "p", "hash": "2"}},
		{nil, map[string]string{"app": "web", traffic.LabelProxy: "p"}},
	} {
		if err := traffic.SetPin(s, traffic.Pin{Split: "web", Keys: step.pin}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, s.Spec.Selector); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"app": "web"}, traffic.DeclaredSelector(s)); diff != "" {
			t.Errorf("declared (-want +got):\n%s", diff)
		}
	}
	if len(s.Annotations) > 0 {
		t.Errorf("annotations %v", s.Annotations)
	}
}

func TestAPinIsWhatTheSelectorStillHas(t *testing.T) {
	pinned := selecting("app", "web")
	if err := traffic.SetPin(pinned, traffic.Pin{Split: "web", Keys: map[string]string{"version": "1", "track": "a"}}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit func(*corev1.Service)
		want map[string]string
	}{
		"untouched":                        {func(*corev1.Service) {}, map[string]string{"version": "1", "track": "a"}},
		"a key was removed":                {func(s *corev1.Service) { delete(s.Spec.Selector, "track") }, map[string]string{"version": "1"}},
		"a key has a value of its owner's": {func(s *corev1.Service) { s.Spec.Selector["track"] = "b" }, map[string]string{"version": "1"}},
		"the selector was reset":           {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} }, map[string]string{}},
		"the record is no record":          {func(s *corev1.Service) { s.Annotations[traffic.AnnotationPin] = "{" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := pinned.DeepCopy()
			test.edit(s)
			if diff := cmp.Diff(test.want, traffic.PinOf(s).Keys); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPinKeysAreThoseOfAPartOfTheRootService(t *testing.T) {
	root := selecting("app", "web")
	for name, test := range map[string]struct {
		backend *corev1.Service
		want    map[string]string
		fails   bool
	}{
		"a version":                       {selecting("app", "web", "version", "1"), map[string]string{"version": "1"}, false},
		"the same pods":                   {selecting("app", "web"), nil, true},
		"pods of another app":             {selecting("app", "other", "version", "1"), nil, true},
		"pods that need not be the app's": {selecting("version", "1"), nil, true},
		"nothing":                         {selecting(), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := traffic.PinKeys(root, test.backend)
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A user may have edited the record before it is read: indexes of the cache read it.
func FuzzPinOf(f *testing.F) {
	f.Add(`{"split":"web","keys":{"version":"1"}}`)
	f.Add(`{"keys":null}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, record string) {
		s := selecting("app", "web", "version", "1")
		s.Annotations = map[string]string{traffic.AnnotationPin: record}
		for k, v := range traffic.DeclaredSelector(s) {
			if s.Spec.Selector[k] != v {
				t.Errorf("declared %s=%s, which is not selected", k, v)
			}
		}
		if err := traffic.SetPin(s, traffic.Pin{}); err != nil {
			t.Fatal(err)
		}
		if _, left := s.Annotations[traffic.AnnotationPin]; left {
			t.Error("the record is left")
		}
	})
}

func TestTheSplitWhoseProxiesAreSelectedHoldsAServiceThatAnotherOnePinned(t *testing.T) {
	root := selecting("app", "web")
	if err := traffic.SetPin(root, traffic.Pin{Split: "pins", Keys: map[string]string{"version": "1"}}); err != nil {
		t.Fatal(err)
	}
	if got := traffic.Holder(root); got != "pins" {
		t.Errorf("pinned, it is held by %q", got)
	}
	root.Spec.Selector[traffic.LabelProxy] = "leads"
	if got := traffic.Holder(root); got != "leads" {
		t.Errorf("behind proxies, it is held by %q", got)
	}
}
