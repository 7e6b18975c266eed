// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// mostRevisions is the largest rollbackWindow of Serin.
const mostRevisions = 10

// rollout is one that is converted.
type rollout struct {
	*converter
	object *source.Object
	serin  *v1alpha1.Rollout
	// deployment is what it releases; nil when only its name is known.
	deployment *appsv1.Deployment
	// made are all objects that it becomes.
	made []runtime.Object
}

func (r *rollout) convert() {
	spec := r.object.Field("spec")
	r.serin = target.Rollout(r.object, r.workload(spec))
	canary, blueGreen := spec.At("strategy", "canary"), spec.At("strategy", "blueGreen")
	canary.Keys() // it may be empty
	switch {
	case canary.Present() == blueGreen.Present():
		spec.At("strategy").Fail("needs exactly one of canary and blueGreen: remove or add one")
	case canary.Present():
		r.canary(canary)
	default:
		r.blueGreen(blueGreen)
	}
	r.settings(spec)
	r.made = append(r.made, r.serin)
	r.object.Finish(knownInRollout)
}

// workload makes the Deployment and returns its name.
func (r *rollout) workload(spec source.Field) string {
	if ref := spec.At("workloadRef"); ref.Present() {
		return r.referenced(spec, ref)
	}
	d := target.Deployment(target.Meta(r.object, r.object.Name()))
	if replicas := spec.At("replicas"); replicas.Present() {
		n := replicas.Int(1, 0, 1<<31-1)
		d.Spec.Replicas = &n
	}
	if !spec.At("selector").Present() || !spec.At("template").Present() {
		spec.At("template").Missing("a Rollout needs selector and template, or workloadRef")
	}
	d.Spec.Selector = &metav1.LabelSelector{}
	spec.At("selector").Decode(d.Spec.Selector)
	spec.At("template").Decode(&d.Spec.Template)
	d.Spec.MinReadySeconds = spec.At("minReadySeconds").Int(0, 0, 1<<31-1)
	if limit := spec.At("revisionHistoryLimit"); limit.Present() {
		n := limit.Int(10, 0, 1<<31-1)
		d.Spec.RevisionHistoryLimit = &n
	}
	r.deployment, r.made = d, append(r.made, d)
	return d.Name
}

// referenced is the Deployment of workloadRef.
func (r *rollout) referenced(spec, ref source.Field) string {
	kind, name := ref.At("kind").Text(), ref.At("name").Text()
	ref.At("apiVersion").Read()
	if kind != "Deployment" {
		ref.At("kind").Fail("is %q: Serin releases Deployments, so write one and name it", kind)
	}
	if down := ref.At("scaleDown"); down.Present() {
		down.Note(source.NoEqual, "the Deployment itself runs the pods")
	}
	replicas := spec.At("replicas").Int(1, 0, 1<<31-1)
	d := r.set.Find("apps", "Deployment", r.object.Namespace(), name)
	if d == nil {
		ref.At("name").Note(source.ToDo, "the Deployment %s was not given, and is not written: scale it to %d before you apply the Rollout", name, replicas)
		return name
	}
	r.deployment = target.Deployment(target.Meta(d, name))
	d.Field("spec").Decode(&r.deployment.Spec)
	if n := r.deployment.Spec.Replicas; n != nil && *n == 0 {
		r.deployment.Spec.Replicas = &replicas
		ref.At("name").Note(source.Differs, "the Deployment %s gets %d replicas, those of the Rollout", name, replicas)
	}
	r.made = append(r.made, r.deployment)
	return name
}

// settings are those of both strategies.
func (r *rollout) settings(spec source.Field) {
	ro := &r.serin.Spec
	if f := spec.At("progressDeadlineSeconds"); f.Present() {
		ro.ProgressDeadline = target.Duration(time.Duration(f.Int(600, 1, 99999)) * time.Second)
	}
	if f := spec.At("progressDeadlineAbort"); !f.Flag(false) {
		f.Note(source.Differs, "a version whose pods are not ready in time is always rolled back")
	}
	if f := spec.At("rollbackWindow", "revisions"); f.Present() {
		n := f.Int(0, 0, 1<<31-1)
		ro.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: min(n, mostRevisions)}
		if n > mostRevisions {
			f.Note(source.Differs, "is %d, the most that Serin takes", mostRevisions)
		}
	}
	ro.Paused = spec.At("paused").Flag(false)
}

// service writes the root Service: the one that was given under that name, or one that is
// made from the ports of the containers.
func (r *rollout) service(f source.Field, name string) {
	r.serin.Spec.Service = name
	if len(name) > target.LongestService {
		f.Fail("has %d characters: the name of the Service that clients call has at most %d", len(name), target.LongestService)
	}
	for _, suffix := range []string{"-stable", "-canary"} {
		if r.set.Find("", "Service", r.object.Namespace(), name+suffix) != nil {
			f.Note(source.ToDo, "Serin makes a Service %s%s while a release is in progress: delete yours of that name before the first one", name, suffix)
		}
	}
	if given := r.set.Find("", "Service", r.object.Namespace(), name); given != nil {
		r.made = append(r.made, target.GivenService(given))
		return
	}
	if r.deployment == nil || len(target.Ports(r.deployment.Spec.Template)) == 0 {
		f.Note(source.ToDo, "the Service %s was not given, and is not written: give it, or check that it selects all pods of the Deployment", name)
		return
	}
	svc := target.Service(metav1.ObjectMeta{Name: name, Namespace: r.object.Namespace()}, r.deployment.Spec.Selector.MatchLabels)
	svc.Spec.Ports = target.Ports(r.deployment.Spec.Template)
	f.Note(source.Assumed, "the Service %s was not given: it is written with the ports of the containers. Compare it with yours", name)
	r.made = append(r.made, svc)
}

// serviceOf is the name of the Service that selects the pods, where the Rollout names none.
func (r *rollout) serviceOf(f source.Field) {
	var found []string
	for _, o := range r.set.Of("", "Service") {
		var svc corev1.ServiceSpec
		o.Field("spec").Decode(&svc)
		if r.deployment != nil && len(svc.Selector) > 0 && labels.SelectorFromSet(svc.Selector).Matches(labels.Set(r.deployment.Spec.Template.Labels)) {
			found = append(found, o.Name())
		}
	}
	switch len(found) {
	case 1:
		r.service(f, found[0])
	case 0:
		f.Note(source.Assumed, "no Service is named: %s is taken to be the one that clients call", r.object.Name())
		r.service(f, r.object.Name())
	default:
		f.Fail("is missing, and %d Services select the pods (%v): name the one that clients call here", len(found), found)
	}
}
