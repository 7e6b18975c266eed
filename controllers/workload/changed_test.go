// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/rand"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached is what a cache keeps of an object.
func cached(o client.Object) client.Object {
	switch o := o.DeepCopyObject().(type) {
	case *appsv1.Deployment:
		o.Status = ReduceStatus(o.Status)
		return o
	case *appsv1.ReplicaSet:
		return Reduce(o).(client.Object) //nolint:forcetypeassert // it is one
	}
	return o
}

func TestAnUpdateOfWhatNoCacheKeepsIsTheSame(t *testing.T) {
	deployment := func() *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "website", ResourceVersion: "1", Generation: 1},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Template: *template("app:v1", map[string]string{"app": "website"})},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
		}
	}
	replicaSet := func() *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: "website-1", ResourceVersion: "1", Generation: 1, Labels: map[string]string{"app": "website"},
				OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "website", UID: "d", Controller: new(true)}},
			},
			Spec:   appsv1.ReplicaSetSpec{Replicas: new(int32(3)), Template: *template("app:v1", map[string]string{"app": "website"})},
			Status: appsv1.ReplicaSetStatus{Replicas: 3, AvailableReplicas: 2},
		}
	}
	failed := func(message string) []appsv1.ReplicaSetCondition {
		return []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: message}}
	}
	for name, test := range map[string]struct {
		deployment func(*appsv1.Deployment)
		replicaSet func(*appsv1.ReplicaSet)
		want       bool // that they differ
	}{
		"a Deployment that is paused says so": {deployment: func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "DeploymentPaused"}}
		}},
		"its pods can be made again": {deployment: func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse}}
		}},
		"those of a ReplicaSet can be made again": {replicaSet: func(rs *appsv1.ReplicaSet) {
			rs.Status.Conditions = failed("")
			rs.Status.Conditions[0].Status = corev1.ConditionFalse
		}},
		"its pods are of another revision": {replicaSet: func(rs *appsv1.ReplicaSet) {
			rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "2"
		}, want: true},
		"its pods are ready, and not available": {deployment: func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.UnavailableReplicas = 4, 1 }},
		"its old pods end":                      {deployment: func(d *appsv1.Deployment) { d.Status.TerminatingReplicas = new(int32(2)) }},
		"its controller has seen it":            {deployment: func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 }, want: true},
		"it has more pods":                      {deployment: func(d *appsv1.Deployment) { d.Status.Replicas = 4 }, want: true},
		"it has more new pods":                  {deployment: func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 4 }, want: true},
		"it has more available pods":            {deployment: func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 4 }, want: true},
		"its template is another one":           {deployment: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:v2" }, want: true},
		"it is deleted":                         {deployment: func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) }, want: true},
		"it is another Deployment":              {deployment: func(d *appsv1.Deployment) { d.UID = "other" }, want: true},
		"it has a mark": {deployment: func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "serin.dev/rollout", "website")
		}, want: true},
		"the controller of a ReplicaSet has seen it": {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.ObservedGeneration = 2 }, want: true},
		"its pods have its labels":                   {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.FullyLabeledReplicas = 3 }},
		"its pods are ready, and not yet available":  {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.ReadyReplicas = 3 }, want: true},
		"its pods end":                 {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = new(int32(1)) }},
		"its pods are available":       {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.AvailableReplicas = 3 }, want: true},
		"it has more pods than before": {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 4 }, want: true},
		"it is to have other pods":     {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = new(int32(4)) }, want: true},
		"its pods can't be made":       {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Status.Conditions = failed("a quota") }, want: true},
		"its pods can't be made for another reason": {replicaSet: func(rs *appsv1.ReplicaSet) {
			rs.Status.Conditions = failed("a quota")
			rs.Status.Conditions[0].Reason = "FailedDelete"
		}, want: true},
		"it has no controller any more": {replicaSet: func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }, want: true},
		"it has another controller":     {replicaSet: func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].UID = "other" }, want: true},
		"it has another label":          {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Labels["serin.dev/promotion"] = "1" }, want: true},
		"its pods get another label":    {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Labels["tier"] = "web" }, want: true},
		"its pods read copies of a ConfigMap": {replicaSet: func(rs *appsv1.ReplicaSet) {
			metav1.SetMetaDataAnnotation(&rs.Spec.Template.ObjectMeta, "serin.dev/configuration", "a=b")
		}, want: true},
		"its template is another one than the one was": {replicaSet: func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Spec.Containers[0].Image = "app:v2" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after client.Object
			if test.deployment != nil {
				d := deployment()
				d.ResourceVersion = "2"
				test.deployment(d)
				before, after = deployment(), d
			} else {
				rs := replicaSet()
				rs.ResourceVersion = "2"
				test.replicaSet(rs)
				before, after = replicaSet(), rs
			}
			if got := Same(cached(before), cached(after)); got != !test.want {
				t.Errorf("the same: %v, want %v", got, !test.want)
			}
		})
	}
}

// Every field of a ReplicaSet, and of its metadata, template and status, is taken from another one
// in turn: both are the same if no reader of the cache sees that.
func TestWhatAReaderOfTheCacheSeesIsNotTheSame(t *testing.T) {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(runtime.NewScheme()))
	next := func() *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{}
		filler.Fill(rs)
		rs.ManagedFields, rs.Spec.Template.ManagedFields, rs.ResourceVersion = nil, nil, ""
		return rs
	}
	parts := map[string]func(*appsv1.ReplicaSet) reflect.Value{
		"metadata": func(rs *appsv1.ReplicaSet) reflect.Value { return reflect.ValueOf(&rs.ObjectMeta).Elem() },
		"spec":     func(rs *appsv1.ReplicaSet) reflect.Value { return reflect.ValueOf(&rs.Spec).Elem() },
		"template": func(rs *appsv1.ReplicaSet) reflect.Value { return reflect.ValueOf(&rs.Spec.Template.ObjectMeta).Elem() },
		"status":   func(rs *appsv1.ReplicaSet) reflect.Value { return reflect.ValueOf(&rs.Status).Elem() },
	}
	seen, unseen := 0, 0
	for range 10 {
		a, other := next(), next()
		for what, part := range parts {
			for i := range part(a).NumField() {
				b := a.DeepCopy()
				part(b).Field(i).Set(part(other.DeepCopy()).Field(i))
				before, after := cached(a), cached(b)
				before.SetResourceVersion("1")
				after.SetResourceVersion("2")
				got := !Same(before, after)
				after.SetResourceVersion("1")
				want := !apiequality.Semantic.DeepEqual(before.DeepCopyObject(), after.DeepCopyObject())
				if got != want {
					t.Errorf("%s of %s: differs: %v, and a reader sees it: %v", part(a).Type().Field(i).Name, what, got, want)
				}
				if want {
					seen++
				} else {
					unseen++
				}
			}
		}
	}
	if seen == 0 || unseen == 0 {
		t.Errorf("%d updates are seen and %d are not: one of them was not tried", seen, unseen)
	}
}
