// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/sampling/evidence"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/schedule"
	"github.com/serin-dev/serin/traffic"
)

// snapshot is an Observation with the objects that the actions need.
type snapshot struct {
	state.Observation
	deployment *appsv1.Deployment
	root       *corev1.Service
	declared   map[string]string     // what the root Service selects by, as its owner wrote it
	split      *splitv1.TrafficSplit // nil when there is none
	backends   map[string]*corev1.Service
	previews   map[string]*corev1.Service // by their names
	// canaryRelease that is delegated; nil when there is none.
	canaryRelease *v1alpha1.CanaryRelease
	// present are the names of the copies of the contents that the template refers
	// to, and configurations what the versions of the workload read.
	present        configrevision.Mapping
	configurations []configrevision.Mapping
	// templates are those that the Rollout names.
	templates []resolve.Template
	// shared are the ClusterMetricProviders that their metrics and the Rollout's name.
	shared resolve.Shared
	// counting is what counts the requests of each version where no router does.
	counting evidence.Counting
	recheck  time.Duration // when to look again at what only time changes
}

// observe reads everything that a decision needs. What can't be read makes the
// whole observation unreadable: the planner then changes nothing.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.Rollout) (snapshot, error) {
	s := snapshot{backends: map[string]*corev1.Service{}, previews: map[string]*corev1.Service{}, Observation: state.Observation{Now: r.options.Clock.Now(), Rollout: ro}}
	s.RouterName = cmp.Or(ro.Spec.Router, r.options.DefaultRouter)
	if isDelegated(ro) {
		s.RouterName = cmp.Or(ro.Spec.Router, v1alpha1.RouterNginx) // it has no other, whatever the default
	}
	s.DrainTime = r.options.Drain[s.RouterName]
	s.RouterOffered = slices.Contains(r.options.Routers, s.RouterName)
	s.Unmatchable = r.options.Served.RefuseMatches()
	s.Split.Requested, s.Split.Observed = strategy.Route{Weight: -1}, -1
	before := r.memory.look(client.ObjectKeyFromObject(ro), s.Now)
	s.ReportedAt, s.Jump, s.OutageAt = before.reportedAt, before.lookout.Jump, before.outage
	s.LeaveOut = r.recordings.get(client.ObjectKeyFromObject(ro)).LeaveOut()
	err := errors.Join(r.observeRival(ctx, &s), r.observeFreezes(ctx, &s), r.observeRoot(ctx, &s), r.observeReleased(ctx, &s), r.observeMetrics(ctx, &s))
	if err != nil {
		s.Unreadable = strings.ReplaceAll(err.Error(), "\n", "; ")
		return s, err
	}
	// It may have gone after s.Now.
	s.Split.GoneSince = r.memory.splitGone(client.ObjectKeyFromObject(ro), s.Split.Presence != kit.Present || !s.Split.Ours, r.options.Clock.Now())
	r.observeDistribution(ctx, &s)
	r.observeTraffic(&s)
	r.observeAnswers(&s)
	return s, nil
}

// observeReleased reads what is released, and what shares its traffic.
func (r *Reconciler) observeReleased(ctx context.Context, s *snapshot) error {
	defer s.compareSplit()
	switch {
	case isDelegated(s.Rollout):
		return r.observeDelegated(ctx, s)
	case s.Rollout.Spec.Services != nil:
		return errors.Join(r.observeSplit(ctx, s), r.observePair(ctx, s))
	}
	return errors.Join(r.observeSplit(ctx, s), r.observeGuard(ctx, s), r.observeWorkload(ctx, s), r.confirmCanary(ctx, s), r.observeRunning(ctx, s), r.observeBackends(ctx, s), r.observePreviews(ctx, s), r.observeConfiguration(ctx, s))
}

// get reads one object of the Rollout's namespace. It is shared with the cache and must not be
// changed.
func (r *Reconciler) get(ctx context.Context, ro *v1alpha1.Rollout, name string, obj client.Object) (kit.Presence, error) {
	err := r.client.Get(ctx, types.NamespacedName{Namespace: ro.Namespace, Name: name}, obj, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		return kit.Present, nil
	case apierrors.IsNotFound(err):
		return kit.Absent, nil
	}
	return kit.Unknown, fmt.Errorf("%T %q could not be read: %w", obj, name, err)
}

// observeRival looks for an older Rollout of the same workload or Service.
func (r *Reconciler) observeRival(ctx context.Context, s *snapshot) error {
	for _, key := range claims(s.Rollout) {
		list := &v1alpha1.RolloutList{}
		// Nothing that the operator writes makes a Rollout a rival.
		err := r.client.List(ctx, list, client.InNamespace(s.Rollout.Namespace), client.MatchingFields{indexClaims: key},
			client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			return fmt.Errorf("rollouts could not be listed: %w", err)
		}
		for i := range list.Items {
			if older(&list.Items[i], s.Rollout) {
				s.Rival = list.Items[i].Name
			}
		}
	}
	return nil
}

// older orders two Rollouts by age, then by name.
func older(a, b *v1alpha1.Rollout) bool {
	if a.UID == b.UID {
		return false
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// observeFreezes finds the operator's Freezes that concern the namespace.
func (r *Reconciler) observeFreezes(ctx context.Context, s *snapshot) error {
	if r.options.NamespacedOnly {
		return nil
	}
	list := &v1alpha1.FreezeList{}
	if err := r.client.List(ctx, list); err != nil {
		return fmt.Errorf("freezes could not be listed: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: s.Rollout.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the namespace could not be read: %w", err)
	}
	for i := range list.Items {
		if schedule.Applies(&list.Items[i], namespace.Labels) {
			s.Freezes = append(s.Freezes, list.Items[i])
		}
	}
	return nil
}

func (r *Reconciler) observeRoot(ctx context.Context, s *snapshot) (err error) {
	s.root = &corev1.Service{}
	s.Service.Presence, err = r.get(ctx, s.Rollout, s.Rollout.Spec.Service, s.root)
	s.declared = traffic.DeclaredSelector(s.root)
	return err
}

func (r *Reconciler) observeWorkload(ctx context.Context, s *snapshot) (err error) {
	d := &appsv1.Deployment{}
	name := s.Rollout.Spec.WorkloadRef.Name
	if s.Workload.Presence, err = r.get(ctx, s.Rollout, name, d); err != nil {
		return err
	}
	if s.Workload.Presence == kit.Absent {
		return r.observeReplicaSets(ctx, s, client.MatchingLabels{v1alpha1.LabelRollout: s.Rollout.Name}, ofNoDeployment)
	}
	s.deployment = d
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	revision, err := workload.Revision(string(d.UID), &d.Spec.Template)
	if err != nil {
		return err
	}
	s.Workload = state.Workload{
		Presence: kit.Present, UID: d.UID, Deleting: !d.DeletionTimestamp.IsZero(),
		Replicas: replicas, Paused: d.Spec.Paused, ManagedBy: d.Annotations[v1alpha1.AnnotationRollout],
		Settled: shell.Settled(d), Unseen: !shell.Seen(d),
		Available: d.Status.AvailableReplicas, Revision: revision, HeldBySerin: shell.HoldsPause(d, v1alpha1.FieldManager),
	}
	if s.Service.Presence == kit.Present {
		s.Service.Problem = s.serviceProblem(d)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("the Deployment %q has a selector that can't be read: %w", name, err)
	}
	return r.observeReplicaSets(ctx, s, client.MatchingLabelsSelector{Selector: selector}, string(d.UID))
}

// serviceProblem says why the root Service can't be split for a Deployment.
func (s *snapshot) serviceProblem(d *appsv1.Deployment) string {
	if problem := s.rootProblem(); problem != "" {
		return problem
	}
	if !labels.SelectorFromSet(s.declared).Matches(labels.Set(d.Spec.Template.Labels)) {
		return fmt.Sprintf("the Service %q does not select the pods of the Deployment %q; correct its selector or the pods' labels", s.root.Name, d.Name)
	}
	return ""
}

// rootProblem says why the root Service can't be split for anything.
func (s *snapshot) rootProblem() string {
	switch root := s.root; {
	case root.Spec.Type == corev1.ServiceTypeExternalName:
		return fmt.Sprintf("the Service %q is of type ExternalName and has no pods; name one that selects the workload's pods", root.Name)
	case root.Spec.ClusterIP == corev1.ClusterIPNone:
		return fmt.Sprintf("the Service %q is headless, so that clients pick pods themselves; name one with a cluster IP", root.Name)
	case len(s.declared) == 0:
		return fmt.Sprintf("the Service %q has no selector; give it the labels of the workload's pods", root.Name)
	}
	return ""
}

// observeReplicaSets reads those with some labels that a Deployment controls, and those that none does.
func (r *Reconciler) observeReplicaSets(ctx context.Context, s *snapshot, which client.ListOption, deployment string) error {
	found := map[string]*appsv1.ReplicaSet{}
	options := []client.ListOption{client.InNamespace(s.Rollout.Namespace), which}
	// One that the Deployment adopts in between would be in neither of two lists, and be taken for deleted.
	for _, of := range slices.Compact([]string{deployment, ofNoDeployment, deployment}) {
		list := &appsv1.ReplicaSetList{}
		if err := r.client.List(ctx, list, append(options, client.MatchingFields{indexDeployment: of})...); err != nil {
			return fmt.Errorf("ReplicaSets could not be listed: %w", err)
		}
		options = append(options, client.DisableReadYourWritesConsistency) // the first list has waited
		for i := range list.Items {
			found[list.Items[i].Name] = &list.Items[i]
		}
	}
	read := shell.ReplicaSets(s.deployment)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		rs := found[name]
		owner, known := s.ownerOf(rs)
		if !known {
			continue
		}
		if annotation := rs.Spec.Template.Annotations[v1alpha1.AnnotationConfiguration]; annotation != "" {
			s.configurations = append(s.configurations, configrevision.ParseMapping(annotation))
		}
		observed := read(rs)
		observed.Owner, observed.Marked, observed.Failure = owner, workload.IsMarked(rs, s.Rollout), shell.Failed(rs).Message
		observed.Unpromoted = rs.Labels[v1alpha1.LabelRollout] == s.Rollout.Name && observed.Promotion == ""
		s.ReplicaSets = append(s.ReplicaSets, observed)
	}
	return nil
}

// ownerOf says who controls a ReplicaSet, if that concerns the Rollout.
func (s *snapshot) ownerOf(rs *appsv1.ReplicaSet) (kit.Owner, bool) {
	c := metav1.GetControllerOfNoCopy(rs)
	switch {
	case c == nil:
		return kit.OwnerNone, true
	case s.deployment != nil && c.UID == s.deployment.UID:
		return kit.OwnerDeployment, true
	case c.Kind == "Deployment":
		return 0, false // one that was adopted keeps its marks
	case workload.IsMarked(rs, s.Rollout):
		return kit.OwnerSerin, true
	case s.root != nil && c.Kind == "Service" && c.UID == s.root.UID:
		// Only a Rollout makes ReplicaSets for a Service.
		uid := rs.Annotations[v1alpha1.AnnotationRolloutUID]
		return kit.OwnerSerin, uid == "" || uid == string(s.Rollout.UID)
	}
	return 0, false
}

func (r *Reconciler) observeBackends(ctx context.Context, s *snapshot) error {
	stable, canary := backendNames(s.Rollout)
	return errors.Join(
		r.observeBackend(ctx, s, v1alpha1.RoleStable, stable, &s.StableService),
		r.observeBackend(ctx, s, v1alpha1.RoleCanary, canary, &s.CanaryService),
	)
}

func (r *Reconciler) observeBackend(ctx context.Context, s *snapshot, role, name string, b *kit.Backend) (err error) {
	svc := &corev1.Service{}
	if b.Presence, err = r.get(ctx, s.Rollout, name, svc); b.Presence != kit.Present {
		return err
	}
	if !svc.DeletionTimestamp.IsZero() {
		b.Presence = kit.Absent
		return nil
	}
	b.Object = shell.ObjectOf(svc)
	s.backends[role] = svc
	b.Ours = workload.IsMarked(svc, s.Rollout)
	b.Revision = svc.Spec.Selector[appsv1.DefaultDeploymentUniqueLabelKey]
	if s.Service.Presence == kit.Present {
		b.UpToDate = workload.BackendUpToDate(svc, makeBackend(s, role, b.Revision))
	}
	return nil
}

// observePreviews reads the preview Service that the spec names, and others that still have a
// key of the Rollout's in their selector.
func (r *Reconciler) observePreviews(ctx context.Context, s *snapshot) (err error) {
	name, list := state.PreviewService(&s.Rollout.Spec), &corev1.ServiceList{}
	if err := r.client.List(ctx, list, client.InNamespace(s.Rollout.Namespace), client.MatchingFields{indexPreviews: s.Rollout.Name}); err != nil {
		return fmt.Errorf("preview Services could not be listed: %w", err)
	}
	for i := range list.Items {
		if stale := &list.Items[i]; stale.Name != name {
			s.StalePreviews, s.previews[stale.Name] = append(s.StalePreviews, shell.ObjectOf(stale)), stale
		}
	}
	if name == "" {
		return nil
	}
	svc := &corev1.Service{}
	if s.Preview.Presence, err = r.get(ctx, s.Rollout, name, svc); s.Preview.Presence != kit.Present {
		return err
	}
	s.previews[name] = svc
	s.Preview.Object, s.Preview.Problem = shell.ObjectOf(svc), previewProblem(svc, s.Rollout.Name, s.deployment)
	pin := traffic.PinOf(svc)
	if pin.Rollout != s.Rollout.Name || len(pin.Keys) == 0 {
		return nil
	}
	s.Preview.Revision = pin.Keys[appsv1.DefaultDeploymentUniqueLabelKey]
	s.Preview.Since = ptr.Deref(pin.Since, metav1.Time{}).Time
	_, canary := backendNames(s.Rollout)
	wanted, err := shell.ReadyEndpoints(ctx, r.client, s.Rollout.Namespace, canary)
	if err != nil {
		return err
	}
	live, err := shell.ReadyEndpoints(ctx, r.client, s.Rollout.Namespace, name)
	s.Preview.Confirmed = len(wanted) > 0 && slices.Equal(wanted, live)
	return err
}

// previewProblem says why a Service can't be the preview of a Rollout that releases a
// Deployment, of which nil is not there.
func previewProblem(svc *corev1.Service, rollout string, d *appsv1.Deployment) string {
	selector := traffic.DeclaredSelector(svc)
	switch pin := traffic.PinOf(svc); {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return fmt.Sprintf("the Service %q is of type ExternalName and has no pods; name one that selects the workload's pods", svc.Name)
	case traffic.Holder(svc) != "":
		return fmt.Sprintf("the Service %q is the root Service of the TrafficSplit %q; name another one", svc.Name, traffic.Holder(svc))
	case pin.Rollout != "" && pin.Rollout != rollout:
		return fmt.Sprintf("the Service %q is still the preview of the Rollout %q; name another one, or end that release", svc.Name, pin.Rollout)
	case d != nil && (len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels))):
		return fmt.Sprintf("the Service %q does not select the pods of the Deployment %q; correct its selector or the pods' labels", svc.Name, d.Name)
	}
	return ""
}

func (r *Reconciler) observeSplit(ctx context.Context, s *snapshot) (err error) {
	ts := &splitv1.TrafficSplit{}
	if s.Split.Presence, err = r.get(ctx, s.Rollout, s.Rollout.Name, ts); s.Split.Presence != kit.Present {
		return err
	}
	s.split = ts
	stable, canary := backendNames(s.Rollout)
	s.Split.Inherited = inherits(s.Rollout, ts)
	s.Split.Split = shell.ObserveSplit(ts, s.Split.Inherited || workload.IsMarked(ts, s.Rollout))
	s.Split.Observed = observedWeight(ts.Status.Backends, stable, canary)
	s.Split.Unresolved = unresolved(ts)
	return nil
}

// compareSplit finds what the split requests, by what Serin would write.
func (s *snapshot) compareSplit() {
	s.ProxyPodsProblem = s.proxyPodsProblem()
	if s.split == nil {
		return
	}
	stable, canary := backendNames(s.Rollout)
	s.Split.Requested = requestedRoute(s.split, s, stable, canary)
	if s.Split.Programmed && mirrored(s.split) != s.Split.Requested.Mirror {
		s.Split.Programmed, s.Split.Waiting = false, "the router has not confirmed the mirrored requests yet"
	}
}

// observeTraffic reads what was measured since the last window that was judged.
func (r *Reconciler) observeTraffic(s *snapshot) {
	var after time.Time
	if a := s.Rollout.Status.Analysis; a != nil && a.LastWindowEnd != nil {
		after = a.LastWindowEnd.Time
	}
	windows, health := r.options.Measurements.Windows(client.ObjectKeyFromObject(s.Rollout), after)
	s.Windows, s.DataProblem = windows, health.Message
	r.attachMetrics(s, after)
	if s.DataProblem == "" {
		s.DataProblem = s.Split.Unresolved // requests can't match a group that does not exist
	}
}

// observeRunning asks the API server for the pods of a canary that gets traffic and has no
// available pod: that containers were ready when their node reported last, or that pods were
// evicted, is not the canary's fault. It is read only then, since the caches hold no pods of
// users.
func (r *Reconciler) observeRunning(ctx context.Context, s *snapshot) error {
	if !s.mayBeCalled() {
		return nil
	}
	i := slices.IndexFunc(s.ReplicaSets, func(rs kit.ReplicaSet) bool {
		return rs.Owner == kit.OwnerSerin && rs.Current && rs.Available == 0
	})
	if i < 0 {
		return nil
	}
	var list corev1.PodList
	err := r.options.Configuration.Reader.List(ctx, &list, client.InNamespace(s.Rollout.Namespace),
		client.MatchingLabels{appsv1.DefaultDeploymentUniqueLabelKey: s.ReplicaSets[i].Revision})
	if err != nil {
		return fmt.Errorf("the pods of the canary could not be listed: %w", err)
	}
	var live time.Time
	if step := s.Rollout.Status.Step; step != nil && step.ProgrammedAt != nil {
		live = step.ProgrammedAt.Time
	}
	s.CanaryExcused = slices.ContainsFunc(list.Items, containersReady) || replaced(list.Items, live)
	return nil
}

// mayBeCalled is whether the canary may get traffic.
func (s *snapshot) mayBeCalled() bool {
	step := s.Rollout.Status.Step
	return s.Split.Observed > 0 || step != nil && step.ProgrammedAt != nil
}

// confirmCanary asks the API server for the ReplicaSet of a canary that may get traffic and that the
// caches lack: a release whose canary was deleted is rolled back.
func (r *Reconciler) confirmCanary(ctx context.Context, s *snapshot) error {
	canary := s.Rollout.Status.Canary
	if !s.mayBeCalled() || canary == nil || canary.StartedAt == nil ||
		slices.ContainsFunc(s.ReplicaSets, func(rs kit.ReplicaSet) bool { return rs.Revision == canary.Revision }) {
		return nil
	}
	return r.confirmAbsent(ctx, s, client.MatchingLabels{v1alpha1.LabelRollout: s.Rollout.Name, appsv1.DefaultDeploymentUniqueLabelKey: canary.Revision})
}

// confirmAbsent asks the API server whether the ReplicaSets with some labels are those that the caches
// have, before something is done by their absence that can't be undone.
func (r *Reconciler) confirmAbsent(ctx context.Context, s *snapshot, which client.ListOption) error {
	list := &appsv1.ReplicaSetList{}
	if err := r.options.Live.List(ctx, list, client.InNamespace(s.Rollout.Namespace), which); err != nil {
		return fmt.Errorf("ReplicaSets could not be listed: %w", err)
	}
	for i := range list.Items {
		rs := &list.Items[i]
		_, known := s.ownerOf(rs)
		seen := slices.ContainsFunc(s.ReplicaSets, func(seen kit.ReplicaSet) bool { return seen.Name == rs.Name })
		if known && !seen && rs.DeletionTimestamp.IsZero() {
			return fmt.Errorf("the cache lacks the ReplicaSet %q", rs.Name)
		}
	}
	return nil
}

// containersReady reports whether all containers of a pod that is to stay were ready when
// its node reported last. The control plane sets the condition Ready of pods whose node does
// not report, and leaves this one.
func containersReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	})
}

// replaced reports whether a canary whose weight is live since some time has no available pod
// because its pods were taken away from it, as the drain of a node does: all that are to stay
// were created since, and none of them has crashed. Where none is to stay, the ReplicaSet is about
// to make others. A pod that its kubelet evicted, because the node had no memory or disk left, has
// failed and is still there: that may be its own fault. A zero time tells of no weight, so that no
// pod was created since.
func replaced(pods []corev1.Pod, live time.Time) bool {
	return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp.IsZero() && (live.IsZero() || !pod.CreationTimestamp.After(live) || crashed(pod))
	})
}

// crashed reports whether a pod, or a container of it, has ended.
func crashed(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.RestartCount > 0 || c.State.Terminated != nil
	})
}
