// SPDX-License-Identifier: Apache-2.0

package served

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestTheStatusIsReadFromTheAnnotation(t *testing.T) {
	status := splitv1.TrafficSplitStatus{
		Conditions: []metav1.Condition{{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue, Reason: splitv1.ReasonProgrammed, ObservedGeneration: 3}},
		Backends:   []splitv1.BackendStatus{{Service: "web-stable", Weight: 9}},
		Confirmed:  &splitv1.ConfirmedStatus{Configuration: "x", Since: metav1.NewMicroTime(time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC))},
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	transform := CacheOptions(traffic.Served{NoStatus: true})
	if len(transform) != 1 || CacheOptions(traffic.Served{}) != nil {
		t.Fatalf("options %v", transform)
	}
	for name, test := range map[string]struct {
		annotation string
		want       splitv1.TrafficSplitStatus
	}{
		"what was written":          {string(text), status},
		"none":                      {"", splitv1.TrafficSplitStatus{}},
		"what a user wrote into it": {`{"backends": 7}`, splitv1.TrafficSplitStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			split := &splitv1.TrafficSplit{}
			split.Annotations = map[string]string{splitv1.AnnotationStatus: test.annotation}
			split.Status.Backends = []splitv1.BackendStatus{{Service: "stale"}}
			out, err := transformSplit(split)
			if err != nil {
				t.Fatal(err)
			}
			read, ok := out.(*splitv1.TrafficSplit)
			if !ok {
				t.Fatalf("got %T", out)
			}
			if diff := cmp.Diff(test.want, read.Status); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
