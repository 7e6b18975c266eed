// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	transform := ServedCacheOptions(traffic.Served{NoStatus: true})
	if len(transform) != 1 || ServedCacheOptions(traffic.Served{}) != nil {
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
			split := makeSplit(9, 1)
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

func TestASplitWithoutAStatusIsToldInItsAnnotation(t *testing.T) {
	w := newWorld(t)
	w.create(shop()...)
	w.endpoints()
	w.create(makeSplit(9, 1)) // for nginx, whose proxies could not report
	r := w.controller()
	r.Options.Served = traffic.Served{Version: "v1alpha2", NoStatus: true, NoMatches: true}
	if _, err := w.reconcile(r); err != nil {
		t.Fatal(err)
	}
	split := w.split()
	var status splitv1.TrafficSplitStatus
	if err := json.Unmarshal([]byte(split.Annotations[splitv1.AnnotationStatus]), &status); err != nil {
		t.Fatalf("%v in %v", err, split.Annotations)
	}
	c := meta.FindStatusCondition(status.Conditions, splitv1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "v1alpha2, have no status in which proxies could report") {
		t.Errorf("the annotation says %+v", c)
	}
	live := &splitv1.TrafficSplit{}
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(split), live))
	if len(live.Status.Conditions) != 0 {
		t.Errorf("the status itself says %+v", live.Status.Conditions)
	}
}
