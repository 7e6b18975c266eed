// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestResourcesOfOneSplitsProxies(t *testing.T) {
	memory := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	tests := []struct {
		name, text string
		want       corev1.ResourceRequirements
		says       string
	}{
		{
			name: "requests and limits", text: `{"requests":{"memory":"64Mi"},"limits":{"memory":"128Mi"}}`,
			want: corev1.ResourceRequirements{Requests: memory("64Mi"), Limits: memory("128Mi")},
		},
		{name: "only a limit", text: `{"limits":{"memory":"1Gi"}}`, want: corev1.ResourceRequirements{Limits: memory("1Gi")}},
		{name: "claims", text: `{"claims":[{"name":"gpu"}]}`, want: DefaultResources(), says: "a proxy takes none"},
		{name: "below 0", text: `{"limits":{"memory":"-1"}}`, want: DefaultResources(), says: "memory is below 0"},
		{name: "another resource", text: `{"limits":{"gpu":"1"}}`, want: DefaultResources(), says: `"gpu" is not a resource of a proxy`},
		{name: "a request above the limit", text: `{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}`, want: DefaultResources(), says: "more cpu than its limit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			split := &splitv1.TrafficSplit{}
			split.Annotations = map[string]string{splitv1.AnnotationRouting: "proxyResources: " + test.text}
			got, err := resourcesOf(split, DefaultResources())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), traffic.FieldProxyResources)) {
				t.Errorf("it says %v", err)
			}
			r := &Router{options: Options{Resources: DefaultResources()}}
			options, problems := r.optionsOf(split)
			if diff := cmp.Diff(test.want, options.Resources); diff != "" || len(problems) > 0 != (test.says != "") {
				t.Errorf("problems %v, options (-want +got):\n%s", problems, diff)
			}
		})
	}
	got, err := resourcesOf(&splitv1.TrafficSplit{}, DefaultResources())
	if diff := cmp.Diff(DefaultResources(), got); diff != "" || err != nil {
		t.Errorf("without resources: %v\n%s", err, diff)
	}
}

func TestOfSeveralWrongResourcesTheSameOneIsReported(t *testing.T) {
	for text, reported := range map[string]string{
		`{"limits": {"memory": "-1", "cpu": "-1"}}`:                                        "cpu",
		`{"requests": {"memory": "2", "cpu": "2"}, "limits": {"memory": "1", "cpu": "1"}}`: "requests more cpu",
	} {
		split := &splitv1.TrafficSplit{}
		split.Annotations = map[string]string{splitv1.AnnotationRouting: "proxyResources: " + text}
		for range 200 {
			if _, err := resourcesOf(split, corev1.ResourceRequirements{}); err == nil || !strings.Contains(err.Error(), ": "+reported) {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
}
