// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

func TestASplitIsUnservedWhenItIsRefusedAndNothingIsProgrammed(t *testing.T) {
	split := func(status metav1.ConditionStatus, generation int64, backends ...splitv1.BackendStatus) *splitv1.TrafficSplit {
		ts := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		ts.Status.Conditions = []metav1.Condition{{Type: splitv1.ConditionAccepted, Status: status, ObservedGeneration: generation}}
		ts.Status.Backends = backends
		return ts
	}
	for name, test := range map[string]struct {
		split *splitv1.TrafficSplit
		want  bool
	}{
		"no router has seen it":                  {&splitv1.TrafficSplit{}, false},
		"accepted":                               {split(metav1.ConditionTrue, 2), false},
		"refused":                                {split(metav1.ConditionFalse, 2), true},
		"an earlier generation was refused":      {split(metav1.ConditionFalse, 1), false},
		"refused, with the earlier one live":     {split(metav1.ConditionFalse, 2, splitv1.BackendStatus{Service: "a"}), false},
		"it is not known whether it is accepted": {split(metav1.ConditionUnknown, 2), false},
	} {
		if got := ObserveSplit(test.split, true).Unserved; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A ReplicaSet that is restored from a backup, and scaled to zero before its controller has adopted its
// pods, would be taken for one without pods otherwise.
func TestPodsOfAReplicaSetAreCountedWhenItsControllerHasSeenIt(t *testing.T) {
	for observed, uncounted := range map[int64]bool{0: true, 1: true, 2: false} {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: observed}}
		if got := ReplicaSets(nil)(rs).Uncounted; got != uncounted {
			t.Errorf("generation %d of 2 is observed: %v", observed, got)
		}
	}
}

func TestWhatCannotBeAskedMayBeThere(t *testing.T) {
	is := func(uid string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(uid)}}
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		there []client.Object
		known bool
		err   error
		want  bool
	}{
		"it is gone":  {},
		"it is there": {there: []client.Object{is("a")}, want: true},
		"it is there, and the cache shows another":  {there: []client.Object{is("a")}, known: true, want: true},
		"another is there that the cache shows":     {there: []client.Object{is("b")}, known: true},
		"another is there that the cache lacks yet": {there: []client.Object{is("b")}, want: true},
		"the API server can't be asked":             {err: broken, want: true},
	} {
		live := fake.NewClientBuilder().WithObjects(test.there...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				return cmp.Or(test.err, c.Get(ctx, key, o, opts...))
			},
		}).Build()
		got, err := MayBeThere(t.Context(), live, is("a"), &corev1.Service{}, test.known)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
