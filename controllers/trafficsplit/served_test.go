// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

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
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "v1alpha2, are not those that proxies read") {
		t.Errorf("the annotation says %+v", c)
	}
	live := &splitv1.TrafficSplit{}
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(split), live))
	if len(live.Status.Conditions) != 0 {
		t.Errorf("the status itself says %+v", live.Status.Conditions)
	}
}
