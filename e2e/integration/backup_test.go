// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// backedUp are the kinds of what there is in the middle of a release, in the order in which Velero
// restores them: by its defaultRestorePriorities, and then by name.
func backedUp() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Version: "v1", Kind: "Endpoints"},
		{Version: "v1", Kind: "Service"},
		v1alpha1.GroupVersion.WithKind("CanaryRelease"),
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		v1alpha1.GroupVersion.WithKind("Rollout"), splitv1.GroupVersion.WithKind("TrafficSplit"),
	}
}

// backup is what Velero keeps of the namespace.
func (s *scene) backup() (objects []*unstructured.Unstructured) {
	s.Helper()
	for _, kind := range backedUp() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := admin.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].GetDeletionTimestamp() == nil { // Velero leaves out what is being deleted
				objects = append(objects, &list.Items[i])
			}
		}
	}
	return objects
}

// restoreMode says how a backup is restored.
type restoreMode struct {
	name string
	// running is whether an operator runs meanwhile.
	running bool
	// anonymous is whether it is not kept which manager wrote which field.
	anonymous bool
}

// restore creates the objects of a backup, as Velero does it in another namespace: by
// resetMetadataAndStatus and its actions for pods and Services, and with what managers wrote.
func (s *scene) restore(objects []*unstructured.Unstructured, mode restoreMode) {
	s.Helper()
	for _, kept := range objects {
		o := kept.DeepCopy()
		for _, field := range []string{
			"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
			"deletionGracePeriodSeconds", "ownerReferences", "managedFields",
		} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(o.Object, "status")
		o.SetNamespace(s.namespace)
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["velero.io/backup-name"], labels["velero.io/restore-name"] = "nightly", "nightly-again"
		o.SetLabels(labels)
		switch o.GetKind() {
		case "Pod":
			unstructured.RemoveNestedField(o.Object, "spec", "nodeName")
			unstructured.RemoveNestedField(o.Object, "spec", "priority")
		case "Service":
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		case "RoleBinding":
			s.bindHere(o, kept.GetNamespace())
		}
		err := admin.Create(s.Context(), o)
		if apierrors.IsAlreadyExists(err) {
			continue // Velero leaves what is there
		}
		if mode.running && labels[traffic.LabelProxy] != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account") {
			continue // Velero reports it, and goes on: the operator has removed the account of a proxy, and makes others
		}
		if err != nil {
			s.Fatalf("restore %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if mode.anonymous {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": kept.GetManagedFields()}})
		if err != nil {
			s.Fatal(err)
		}
		if err := admin.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			s.Fatalf("restore the managers of %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// bindHere has the accounts of a namespace that a RoleBinding names be those of the one that it is
// restored in.
func (s *scene) bindHere(binding *unstructured.Unstructured, was string) {
	s.Helper()
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	if err != nil {
		s.Fatal(err)
	}
	for _, subject := range subjects {
		if account, ok := subject.(map[string]any); ok && account["namespace"] == was {
			account["namespace"] = s.namespace
		}
	}
	if err := unstructured.SetNestedSlice(binding.Object, subjects, "subjects"); err != nil {
		s.Fatal(err)
	}
}

// restoreModes are how backups are restored.
func restoreModes() []restoreMode {
	return []restoreMode{
		{name: "into a cluster without an operator"},
		{name: "while an operator runs", running: true},
		{name: "without managers of fields", anonymous: true},
		{name: "without managers of fields while an operator runs", anonymous: true, running: true},
	}
}

// restoredElsewhere stops the operator, takes a backup of the play, and begins another one that it is
// restored in.
func (p *stage) restoredElsewhere(mode restoreMode) *stage {
	p.Helper()
	return p.restoredWith(mode, func(s *scene, objects []*unstructured.Unstructured) { s.restore(objects, mode) })
}

// restoredWith is restoredElsewhere with a restore of another kind.
func (p *stage) restoredWith(mode restoreMode, restore func(*scene, []*unstructured.Unstructured)) *stage {
	p.Helper()
	p.operator.stop(p.T)
	objects := p.backup()
	s := newScene(p.T, guardedIf(p.guarded))
	q := &stage{scene: s, history: record(s), time: newMeasurements()}
	s.serveProxies()
	if mode.running {
		q.operator = s.startOperator(q.time)
	}
	restore(s, objects)
	s.eventually("the cache has it", func(ctx context.Context) bool { return cached.Get(ctx, s.key("website"), &v1alpha1.Rollout{}) == nil })
	s.eventually("the cache has it", func(ctx context.Context) bool { return cached.Get(ctx, s.key("website"), &appsv1.Deployment{}) == nil })
	s.reader = cached
	p.Cleanup(q.checkPromise)
	q.answersSince(mode)
	if !mode.running {
		q.operator = s.startOperator(q.time)
	}
	return q
}

// answersSince checks that a pod answers behind the Service, from the first one on. What a backup brings
// leads nowhere until an operator that starts has restored it.
func (p *stage) answersSince(mode restoreMode) {
	p.Helper()
	from := p.moment()
	if mode.running {
		from = 0
	}
	p.promise = promise{keeps: 1}
	if !mode.running {
		p.promise.writes = restoredWithin
	}
	p.Cleanup(func() {
		first, _ := p.first(func(w world) bool { return w.answers("website") })
		p.begun = max(p.begun, from, first)
	})
}

// resume keeps the promise of all pods from now on.
func (p *stage) resume() {
	p.Helper()
	p.begun, p.promise = p.moment(), promise{keeps: 4}
}

// largest is how many replicas a version was to have at most until now.
func (p *stage) largest(image string) (most int32) {
	p.Helper()
	p.caughtUp()
	for _, m := range p.sorted() {
		if rs, ok := m.object.(*appsv1.ReplicaSet); ok && rs.Spec.Template.Spec.Containers[0].Image == image {
			most = max(most, *rs.Spec.Replicas)
		}
	}
	return most
}

// stables are the revisions that the status called stable, each once in a row.
func (p *stage) stables() (revisions []string) {
	p.Helper()
	p.caughtUp()
	for _, m := range p.sorted() {
		if ro, ok := m.object.(*v1alpha1.Rollout); ok && ro.Status.Stable != nil && !slices.Contains(revisions, ro.Status.Stable.Revision) {
			revisions = append(revisions, ro.Status.Stable.Revision)
		}
	}
	return revisions
}

// atStep waits until a step is live, by whatever shares the traffic.
func (p *stage) atStep(step int32) {
	p.Helper()
	if p.rollout().Spec.Router != v1alpha1.RouterNone {
		p.held(step)
		return
	}
	p.eventually("the share of the step is live", func(context.Context) bool {
		st := p.rollout().Status.Step
		if st != nil && st.Index == step && st.ProgrammedAt == nil {
			p.pass(5 * time.Second)
		}
		return st != nil && st.Index == step && st.ProgrammedAt != nil
	})
}

// TestABackupOfTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep: what was stable
// serves, and nothing rolls the new version out.
func TestABackupOfTheMiddleOfAReleaseThatIsRestoredReleasesFromTheFirstStep(t *testing.T) {
	t.Parallel()
	for _, mode := range restoreModes() {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				router v1alpha1.RouterName
				second int32 // the weight of the second step, which is restored
			}{
				{v1alpha1.RouterNginx, 60},
				{v1alpha1.RouterSMI, 60},
				{v1alpha1.RouterNone, 30}, // with 60 the new version has all its pods
			} {
				t.Run(string(test.router), func(t *testing.T) {
					t.Parallel()
					p := begin(t, func(c *cast) {
						c.rollout.Spec.Router, c.rollout.Spec.Strategy.Steps[1].Weight, c.guarded = test.router, test.second, true
					})
					p.setImage(imageV2)
					p.atStep(0)
					p.pass(time.Hour)
					p.atStep(1)
					p.restoredElsewhere(mode).checkReleasedAgain(p.rollout().Status.Stable.Revision, *p.canary().Spec.Replicas)
				})
			}
		})
	}
}

// checkReleasedAgain checks that the release of v2 begins anew after a restore, and ends well. The
// canary had some pods.
func (p *stage) checkReleasedAgain(stable string, canary int32) {
	p.Helper()
	p.atStep(0)
	if pods := p.pods(); len(pods[imageV1]) != 4 || len(pods[imageV2]) != 1 {
		p.Errorf("at the first step: pods %v", pods)
	}
	if got := p.stables(); !slices.Equal(got, []string{stable}) {
		p.Errorf("stable were %v, want %s", got, stable)
	}
	if most := p.largest(imageV2); most > canary {
		p.Errorf("the new version was to have %d pods, and %d in the backup", most, canary)
	}
	p.resume()
	p.pass(time.Hour)
	p.atStep(1)
	p.pass(time.Hour)
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
	p.checkNoCanary()
}

// checkNoCanary: no canary is left, and the Deployment goes on.
func (p *stage) checkNoCanary() {
	p.Helper()
	if left := p.canaries(); len(left) > 0 || p.deployment().Spec.Paused {
		p.Errorf("left behind: %v, paused %v", left, p.deployment().Spec.Paused)
	}
}

// TestABackupBetweenReleasesThatIsRestoredIsStable: nothing is released, and the next version
// goes by its steps.
func TestABackupBetweenReleasesThatIsRestoredIsStable(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{true, false} {
		for _, mode := range restoreModes() {
			t.Run(fmt.Sprintf("%s guarded %t", mode.name, guarded), func(t *testing.T) {
				t.Parallel()
				p := begin(t, func(c *cast) { c.guarded = guarded })
				stable := p.rollout().Status.Stable.Revision
				q := p.restoredElsewhere(mode)
				q.waitReady()
				if got := q.stables(); !slices.Equal(got, []string{stable}) {
					t.Errorf("stable were %v, want %s", got, stable)
				}
				q.checkPods(imageV1, 4)
				q.checkGivenBack()
				if q.deployment().Spec.Paused == guarded {
					t.Errorf("paused %v", !guarded)
				}
				q.resume()
				q.release()
				q.finish(4)
			})
		}
	}
}

// TestAVersionThatWasRolledBackIsNotTriedAgainAfterARestore until the template changes.
func TestAVersionThatWasRolledBackIsNotTriedAgainAfterARestore(t *testing.T) {
	t.Parallel()
	for _, mode := range restoreModes() {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, func(c *cast) { c.guarded = true })
			p.release()
			p.time.fail(true)
			p.waitReason(v1alpha1.ReasonRolledBack)
			why := p.rollout().Status.Decision
			q := p.restoredElsewhere(mode)
			q.waitReason(v1alpha1.ReasonRolledBack)
			if d := q.rollout().Status.Decision; d.Reason != why.Reason || d.Message != why.Message {
				t.Errorf("decided %+v, and before %+v", d, why)
			}
			if most := q.largest(imageV2); most > 0 {
				t.Errorf("the rejected version was to have %d pods", most)
			}
			q.checkPods(imageV1, 4)
			q.resume()
			q.setImage(imageV3)
			for at := range int32(2) {
				q.atStep(at)
				q.pass(time.Hour)
			}
			q.waitReady()
			q.checkPods(imageV3, 4)
			q.checkGivenBack()
		})
	}
}
