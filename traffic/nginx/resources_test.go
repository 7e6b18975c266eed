// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

func TestResourcesOfOneSplitsProxies(t *testing.T) {
	of := func(text string) (out corev1.ResourceRequirements) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, test := range map[string]struct{ operators, own, want string }{
		"one quantity takes the place of the operator's": {
			own: "{limits: {memory: 1Gi}}", want: "{requests: {cpu: 50m, memory: 96Mi}, limits: {memory: 1Gi}}",
		},
		"all do": {
			own: "{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}", want: "{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}",
		},
		"one that the operator does not have is added": {
			own: "{limits: {cpu: 2}}", want: "{requests: {cpu: 50m, memory: 96Mi}, limits: {cpu: 2, memory: 512Mi}}",
		},
		"a limit below what the operator requests lowers that": {
			own: "{limits: {memory: 64Mi}}", want: "{requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 64Mi}}",
		},
		"a request above the operator's limit raises that": {
			own: "{requests: {memory: 1Gi}}", want: "{requests: {cpu: 50m, memory: 1Gi}, limits: {memory: 1Gi}}",
		},
		"the operator sets nothing aside": {
			operators: "{limits: {memory: 1Gi}}", own: "{requests: {memory: 2Gi}}", want: "{requests: {memory: 2Gi}, limits: {memory: 2Gi}}",
		},
		"nothing is said": {own: "{}", want: "{requests: {cpu: 50m, memory: 96Mi}, limits: {memory: 512Mi}}"},
	} {
		t.Run(name, func(t *testing.T) {
			operators := DefaultResources()
			if test.operators != "" {
				operators = of(test.operators)
			}
			before := *operators.DeepCopy()
			own := of(test.own)
			got := merged(operators, &splitv1.ProxyResources{Requests: own.Requests, Limits: own.Limits})
			if diff := cmp.Diff(of(test.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, operators); diff != "" {
				t.Errorf("the resources of one split became those of all:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(DefaultResources(), merged(DefaultResources(), nil)); diff != "" {
		t.Errorf("without resources of its own (-want +got):\n%s", diff)
	}
}
