// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/workload"
)

// restoreFirst restores what is left of an earlier Rollout of the same name, and has the Rollout say what that
// waits for. It reports whether it waits.
func (r *Reconciler) restoreFirst(ctx context.Context, ro *v1alpha1.Rollout, stored *v1alpha1.RolloutStatus) (again reconcile.Result, waits bool, err error) {
	key := client.ObjectKeyFromObject(ro)
	again, why, err := r.restoreOrphans(ctx, key, ro)
	if why == "" {
		return again, false, nil
	}
	if err != nil {
		why = fmt.Sprintf("Could not %v.", err)
	}
	d := release.AwaitEarlier(state.Observation{Now: r.options.Clock.Now(), Rollout: ro, Stored: stored, ReportedAt: r.memory.known(key).reportedAt}, why)
	if err := errors.Join(err, r.report(ctx, ro, stored, d)); err != nil {
		again, err = shell.Retry(err)
		return again, true, err
	}
	return reconcile.Result{RequeueAfter: sooner(again.RequeueAfter, d.After)}, true, nil
}

// lookingForRemains is what restoreOrphans waits for until it knows more.
const lookingForRemains = "Looking for what it is."

// restoreOrphans restores what is left of a Rollout that is gone: when a user removed its
// finalizer, or a Deployment was restored from a backup. It is done as when the Rollout is
// deleted, by a Rollout with what can be seen of the one that is gone. Now is the one that
// has its name by now; nil for none. It says what that waits for; "" if there is nothing to do.
func (r *Reconciler) restoreOrphans(ctx context.Context, key types.NamespacedName, now *v1alpha1.Rollout) (again reconcile.Result, waits string, err error) {
	gone, err := r.remains(ctx, key, now)
	if err != nil {
		if now != nil {
			return again, "", nil // it finds and reports the same
		}
		return again, lookingForRemains, fmt.Errorf("look for what is left of the Rollout: %w", err)
	}
	since := r.memory.orphaned(key, gone != nil, r.options.Clock.Now())
	if gone == nil {
		return again, "", nil
	}
	if is, err := shell.MayBeThere(ctx, r.options.Live, gone, &v1alpha1.Rollout{}, now != nil); err != nil {
		return again, lookingForRemains, fmt.Errorf("ask the API server for the Rollout: %w", err)
	} else if is {
		return again, lookingForRemains, nil // the cache will show it
	}
	gone.DeletionTimestamp = &metav1.Time{Time: since}
	s, err := r.observe(ctx, gone)
	if err != nil {
		return again, lookingForRemains, fmt.Errorf("read what is left of the Rollout: %w", err)
	}
	gone.Status = release.Reconstruct(s.Observation)
	d := release.Decide(s.Observation)
	for _, a := range d.Actions {
		if _, last := a.(kit.RemoveFinalizer); last && now != nil {
			return again, "", nil // what is still there is nothing that Serin removes
		}
		if err := r.restoreOrphan(ctx, s, a, now); err != nil {
			again, err = shell.Retry(fmt.Errorf("%s: %w", a, err))
			return again, sentence(&d), err
		}
	}
	return reconcile.Result{RequeueAfter: d.After}, sentence(&d), nil
}

// sentence is what a decision says.
func sentence(d *state.Decision) string {
	return meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady).Message
}

// restoreOrphan carries one action out. The Deployment is left to the Rollout that manages
// it now; it is told why it stays paused, since no Rollout is there to say it.
func (r *Reconciler) restoreOrphan(ctx context.Context, s snapshot, action kit.Action, now *v1alpha1.Rollout) error {
	restored, hold := action.(state.RestoreDeployment)
	if _, last := action.(kit.RemoveFinalizer); last || hold && now != nil {
		return nil
	}
	if hold && !restored.Paused && s.Rollout.Status.Stable == nil && s.deployment != nil {
		// Its template is rolled out, since no version is known that it would replace.
		selector, err := metav1.LabelSelectorAsSelector(s.deployment.Spec.Selector)
		if err := errors.Join(err, r.confirmAbsent(ctx, &s, client.MatchingLabelsSelector{Selector: selector})); err != nil {
			return err
		}
	}
	log.FromContext(ctx).Info(action.String(), "Rollout", klog.KObj(s.Rollout), "reason", "it is gone")
	if err := r.apply(ctx, s, action); err != nil {
		return err
	}
	if restored.Paused {
		r.reporter().Record(s.deployment, corev1.EventTypeWarning, v1alpha1.ReasonDeleting, fmt.Sprintf(
			"Its Rollout %q is gone. It stays paused, since its template is not the stable version; revert the template, or set spec.paused to false to roll it out", s.Rollout.Name))
	}
	return nil
}

// remains are what is left of a Rollout, as a Rollout that made it; nil for nothing.
func (r *Reconciler) remains(ctx context.Context, key types.NamespacedName, now *v1alpha1.Rollout) (*v1alpha1.Rollout, error) {
	found := remains{now: now}
	found.Namespace, found.Name, found.Finalizers = key.Namespace, key.Name, []string{v1alpha1.Finalizer}
	for _, look := range []func(context.Context, *remains) error{r.leftSplit, r.leftServices, r.leftReplicaSets, r.leftDeployment, r.leftPreviews, r.leftDelegation} {
		if err := look(ctx, &found); err != nil {
			return nil, err
		}
	}
	if !found.any {
		return nil, nil //nolint:nilnil // there is nothing
	}
	return &found.Rollout, nil
}

// leftEarlier reports whether objects that a release needs are those of an earlier Rollout of the
// same name, which may appear at any time when a backup is restored. In the middle of a release
// they are the Rollout's own, whatever their marks say.
func (s *snapshot) leftEarlier() bool {
	objects := []client.Object{}
	if s.split != nil && !s.Split.Inherited {
		objects = append(objects, s.split)
	}
	for _, svc := range s.backends {
		objects = append(objects, svc)
	}
	return s.Rollout.Status.Weight == nil && slices.ContainsFunc(objects, func(o client.Object) bool {
		uid := o.GetAnnotations()[v1alpha1.AnnotationRolloutUID]
		return o.GetLabels()[v1alpha1.LabelRollout] == s.Rollout.Name && uid != "" && uid != string(s.Rollout.UID)
	})
}

// remains is a Rollout in the making.
type remains struct {
	v1alpha1.Rollout
	now *v1alpha1.Rollout
	any bool
}

// mine reports whether an object was made for the Rollout, and not for the one that has its
// name by now, and notes that. Those of an even earlier one come later.
func (f *remains) mine(o client.Object) bool {
	uid := types.UID(o.GetAnnotations()[v1alpha1.AnnotationRolloutUID])
	if o.GetLabels()[v1alpha1.LabelRollout] != f.Name || f.now != nil && f.now.UID == uid || f.any && f.UID != uid {
		return false
	}
	f.any, f.UID = true, uid
	return true
}

func (r *Reconciler) leftSplit(ctx context.Context, f *remains) error {
	ts := &splitv1.TrafficSplit{}
	if presence, err := r.get(ctx, &f.Rollout, f.Name, ts); presence != kit.Present || f.now != nil && inherits(f.now, ts) || !f.mine(ts) {
		return err
	}
	specOf(&f.Spec, ts)
	return nil
}

// inherits reports whether a Rollout goes on with the split of an earlier one of its name: of two
// Services, only that says which has the traffic.
func inherits(ro *v1alpha1.Rollout, ts *splitv1.TrafficSplit) bool {
	var of v1alpha1.RolloutSpec
	specOf(&of, ts)
	pair, uid := ro.Spec.Services, ts.Annotations[v1alpha1.AnnotationRolloutUID]
	return pair != nil && of.Services != nil && *of.Services == *pair && of.Service == ro.Spec.Service && ts.DeletionTimestamp.IsZero() &&
		ts.Labels[v1alpha1.LabelRollout] == ro.Name && uid != "" && uid != string(ro.UID)
}

func (r *Reconciler) leftServices(ctx context.Context, f *remains) error {
	list := &corev1.ServiceList{}
	if err := r.client.List(ctx, list, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelRollout: f.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("services could not be listed: %w", err)
	}
	for i := range list.Items {
		if svc := &list.Items[i]; svc.DeletionTimestamp.IsZero() && f.mine(svc) && f.Spec.Service == "" {
			f.Spec.Service = strings.TrimSuffix(svc.Name, "-"+svc.Labels[v1alpha1.LabelRole])
		}
	}
	return nil
}

// leftReplicaSets finds canaries. One that was adopted keeps its mark.
func (r *Reconciler) leftReplicaSets(ctx context.Context, f *remains) error {
	list := &appsv1.ReplicaSetList{}
	if err := r.client.List(ctx, list, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelRollout: f.Name},
		client.MatchingFields{indexDeployment: ofNoDeployment}); err != nil {
		return fmt.Errorf("ReplicaSets could not be listed: %w", err)
	}
	for i := range list.Items {
		rs := &list.Items[i]
		if c := metav1.GetControllerOfNoCopy(rs); c == nil || c.Kind != "Service" || !f.mine(rs) {
			continue
		} else if f.Spec.Service == "" {
			f.Spec.Service = c.Name
		}
		f.Spec.WorkloadRef.Name = strings.TrimSuffix(rs.Name, "-"+rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	}
	return nil
}

// leftDeployment finds the Deployment that is managed. It does not say by which UID. Which versions
// it has is not known until its controller has seen it, as when it is restored from a backup.
func (r *Reconciler) leftDeployment(ctx context.Context, f *remains) error {
	list := &appsv1.DeploymentList{}
	if err := r.client.List(ctx, list, client.InNamespace(f.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("deployments could not be listed: %w", err)
	}
	for i := range list.Items {
		if d := &list.Items[i]; d.Annotations[v1alpha1.AnnotationRollout] == f.Name && shell.Seen(d) {
			f.any = f.any || f.now == nil
			f.Spec.WorkloadRef.Name = d.Name
		}
	}
	return nil
}

// leftPreviews finds preview Services. The Rollout that has the name by now restores them.
func (r *Reconciler) leftPreviews(ctx context.Context, f *remains) error {
	list := &corev1.ServiceList{}
	if err := r.client.List(ctx, list, client.InNamespace(f.Namespace), client.MatchingFields{indexPreviews: f.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("preview Services could not be listed: %w", err)
	}
	f.any = f.any || f.now == nil && len(list.Items) > 0
	return nil
}

// leftDelegation finds the CanaryRelease that has a weight of the Rollout. One that is restored from a
// backup, as its Rollout will be, has to know first what that decided about it.
func (r *Reconciler) leftDelegation(ctx context.Context, f *remains) error {
	if !r.options.CanaryReleases || f.any || f.now != nil {
		return nil
	}
	list := &v1alpha1.CanaryReleaseList{}
	if err := r.client.List(ctx, list, client.InNamespace(f.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("CanaryReleases could not be listed: %w", err)
	}
	for i := range list.Items {
		cr := &list.Items[i]
		known := cr.Status.ManifestDigest != "" || cr.Status.Decision != nil
		if d := delegatedOf(cr); known && d.Held && d.Rollout == f.Name && cr.Spec.Delegation.By == f.Name {
			f.any = true
			f.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: cr.Name}
			if len(cr.Status.Services) > 0 {
				f.Spec.Service = cr.Status.Services[0].Service
			}
		}
	}
	return nil
}

// specOf is what the spec of a Rollout says of its split, by the split.
func specOf(spec *v1alpha1.RolloutSpec, ts *splitv1.TrafficSplit) {
	spec.Service = ts.Spec.Service
	stable := workload.BackendName(spec.Service, v1alpha1.RoleStable)
	if b := ts.Spec.Backends; len(b) == 2 && !slices.ContainsFunc(b, func(b splitv1.Backend) bool { return b.Service == stable }) {
		spec.Services = &v1alpha1.ServicePair{Stable: b[0].Service, Canary: b[1].Service}
	}
	routing, err := splitv1.RoutingOf(ts)
	if err != nil {
		return // another actor's edit: it is written again
	}
	spec.Router, spec.ProxyPods = v1alpha1.RouterName(routing.Router), routing.ProxyPods
	for _, ref := range routing.Routes {
		spec.RouteRefs = append(spec.RouteRefs, v1alpha1.RouteReference{Kind: v1alpha1.RouteKind(ref.Kind), Name: ref.Name, Section: ref.Section})
	}
	if c := routing.StickyCookie; c != nil {
		spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: c.Name, MaxAge: v1alpha1.Duration(c.MaxAge)}
	}
}
