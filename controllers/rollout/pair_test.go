// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestTheNewestReplicaSetWithPodsIsBehindAService(t *testing.T) {
	replicaSet := func(name, app string, age int, replicas int32) appsv1.ReplicaSet {
		rs := appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
		rs.Name, rs.CreationTimestamp = name, metav1.NewTime(time.Unix(int64(1000-age), 0))
		rs.Spec.Template.Labels = map[string]string{"app": app}
		return rs
	}
	for name, test := range map[string]struct {
		list []appsv1.ReplicaSet
		want string
		idle bool
	}{
		"none":                           {},
		"one of another Service":         {list: []appsv1.ReplicaSet{replicaSet("other", "b", 1, 2)}},
		"the newer of two":               {list: []appsv1.ReplicaSet{replicaSet("new", "a", 1, 2), replicaSet("old", "a", 9, 2)}, want: "new"},
		"an older one, when it has pods": {list: []appsv1.ReplicaSet{replicaSet("new", "a", 1, 0), replicaSet("old", "a", 9, 2)}, want: "old", idle: true},
		"none, when all scaled to zero":  {list: []appsv1.ReplicaSet{replicaSet("new", "a", 1, 0), replicaSet("old", "a", 9, 0)}, idle: true},
		"none, when another has no pods": {list: []appsv1.ReplicaSet{replicaSet("other", "b", 1, 0)}},
		"one whose scale is not set (1)": {list: []appsv1.ReplicaSet{func() appsv1.ReplicaSet { rs := replicaSet("new", "a", 1, 0); rs.Spec.Replicas = nil; return rs }()}, want: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			newest, idle := newestOf(test.list, labels.SelectorFromSet(labels.Set{"app": "a"}))
			got := ""
			if newest != nil {
				got = newest.Name
			}
			if got != test.want || idle != test.idle {
				t.Errorf("%q, idle %v; want %q, idle %v", got, idle, test.want, test.idle)
			}
		})
	}
}

func TestARolloutOfTwoServicesIsFoundByBoth(t *testing.T) {
	ro := &v1alpha1.Rollout{}
	ro.Spec.Services = &v1alpha1.ServicePair{Stable: "foobar-v1", Canary: "foobar-v2"}
	for _, name := range []string{"foobar-v1", "foobar-v2"} {
		if !slices.Contains(names(ro), claimService(name)) {
			t.Errorf("a change of the Service %q is not noticed", name)
		}
	}
}
