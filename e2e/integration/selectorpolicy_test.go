// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// What Serin added to a selector stays in the write by which another actor drops it, and the
// rest of that write is let through.
func TestAPolicyKeepsTheKeysOfASplitInASelector(t *testing.T) {
	t.Parallel()
	s := newScene(t, guardedIf(true))
	proxied := map[string]string{"app": "website", traffic.LabelProxy: "website"}
	pinned := map[string]string{"app": "website", "tier": "front", "pod-template-hash": "5d4f"}
	pin := map[string]string{traffic.AnnotationPin: `{"split":"website","keys":{"pod-template-hash":"5d4f"}}`}
	for i, test := range []struct {
		what          string
		had           map[string]string
		annotations   map[string]string
		manager       string
		writes, wants map[string]string
	}{
		{what: "the key is dropped", had: proxied, writes: map[string]string{"app": "website"}, wants: proxied},
		{
			what: "the owner selects other pods", had: proxied, writes: map[string]string{"app": "shop"},
			wants: map[string]string{"app": "shop", traffic.LabelProxy: "website"},
		},
		{what: "Serin restores the Service", had: proxied, manager: traffic.FieldManager, writes: map[string]string{"app": "website"}, wants: map[string]string{"app": "website"}},
		{what: "the Service is in no split", had: map[string]string{"app": "website", "tier": "front"}, writes: map[string]string{"app": "website"}, wants: map[string]string{"app": "website"}},
		{
			what: "the owner drops a key, and those of a version with it", had: pinned, annotations: pin, writes: map[string]string{"app": "website"},
			wants: map[string]string{"app": "website", "pod-template-hash": "5d4f"},
		},
		{what: "Serin moves the Service to another version", had: pinned, annotations: pin, manager: traffic.FieldManager, writes: map[string]string{"app": "website"}, wants: map[string]string{"app": "website"}},
		{what: "the owner takes the selector away", had: proxied, writes: nil, wants: nil},
	} {
		t.Run(test.what, func(t *testing.T) {
			o := service("website-" + string(rune('a'+i)))
			o.Spec.Selector, o.Annotations = test.had, test.annotations
			s.create(o)
			o.Spec.Selector, o.Labels = test.writes, map[string]string{"changed": "yes"}
			var options []client.UpdateOption
			if test.manager != "" {
				options = append(options, client.FieldOwner(test.manager))
			}
			if err := admin.Update(t.Context(), o, options...); err != nil {
				t.Fatal(err)
			}
			got := &corev1.Service{}
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.wants, got.Spec.Selector); diff != "" {
				t.Errorf("its selector (-want +got):\n%s", diff)
			}
			if got.Labels["changed"] != "yes" {
				t.Errorf("the rest of the write is lost: %v", got.Labels)
			}
		})
	}
}
