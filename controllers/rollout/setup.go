// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/rollout/contents"
	"github.com/serin-dev/serin/controllers/sampling/templates"
	"github.com/serin-dev/serin/traffic"
)

// indexClaims finds the Rollouts that claim a workload or a Service.
const indexClaims = "claims"

func claimWorkload(name string) string      { return "Deployment/" + name }
func claimCanaryRelease(name string) string { return "CanaryRelease/" + name }
func claimService(name string) string       { return "Service/" + name }

// claims are the objects that only one Rollout may have.
func claims(ro *v1alpha1.Rollout) []string {
	if ro.Spec.Services != nil {
		return []string{claimService(ro.Spec.Service)}
	}
	if isDelegated(ro) {
		return []string{claimCanaryRelease(ro.Spec.WorkloadRef.Name), claimService(ro.Spec.Service)}
	}
	own := []string{claimWorkload(ro.Spec.WorkloadRef.Name), claimService(ro.Spec.Service)}
	if preview := state.PreviewService(&ro.Spec); preview != "" {
		own = append(own, claimService(preview))
	}
	return own
}

// indexPreviews finds the Services that have a key of a Rollout's in their selector.
const indexPreviews = "rollout.serin.dev/preview-of"

func previewIndex(o client.Object) []string {
	if svc, ok := o.(*corev1.Service); ok {
		if rollout := traffic.PinOf(svc).Rollout; rollout != "" {
			return []string{rollout}
		}
	}
	return nil
}

// rolloutByPreview finds the Rollout that a preview Service has a key of, which may be gone.
func rolloutByPreview(_ context.Context, o client.Object) []reconcile.Request {
	rollouts := previewIndex(o)
	if len(rollouts) == 0 {
		return nil
	}
	return rolloutNamed(o, rollouts[0])
}

// indexNames finds the Rollouts whose releases need the name of an object.
const indexNames = "names"

func claimSplit(name string) string { return "TrafficSplit/" + name }

// ofPairs is a value of the index for all Rollouts that name two Services.
const ofPairs = "pairs"

// names are those of the TrafficSplit and of the Services of single versions, Serin's or not.
func names(ro *v1alpha1.Rollout) []string {
	if isDelegated(ro) {
		return nil
	}
	if pair := ro.Spec.Services; pair != nil {
		return []string{ofPairs, claimSplit(ro.Name), claimService(pair.Stable), claimService(pair.Canary)}
	}
	stable, canary := backendNames(ro)
	return []string{claimSplit(ro.Name), claimService(stable), claimService(canary)}
}

// indexTemplates finds the Rollouts that name a template.
const indexTemplates = "templates"

// indexDeployment finds ReplicaSets by the UID of the Deployment that controls them: a namespace has many
// of other Deployments.
const indexDeployment = "rollout.serin.dev/deployment"

// ofNoDeployment is its value for canaries, and for those without a controller.
const ofNoDeployment = "none"

func controllingDeployment(o client.Object) []string {
	if c := metav1.GetControllerOfNoCopy(o); c != nil && c.Kind == "Deployment" {
		return []string{string(c.UID)}
	}
	return []string{ofNoDeployment}
}

// index is one index of the cache.
type index struct {
	object client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []index {
	of := func(keys func(*v1alpha1.Rollout) []string) client.IndexerFunc {
		return func(o client.Object) []string {
			ro, ok := o.(*v1alpha1.Rollout)
			if !ok {
				return nil
			}
			return keys(ro)
		}
	}
	return []index{
		{&v1alpha1.Rollout{}, indexClaims, of(claims)},
		{&v1alpha1.Rollout{}, indexNames, of(names)},
		{&v1alpha1.Rollout{}, indexTemplates, of(templates.Names)},
		{&corev1.Service{}, indexPreviews, previewIndex},
		{&appsv1.ReplicaSet{}, indexDeployment, controllingDeployment},
	}
}

// SetupWithManager adds the controller to a manager. The channel carries the
// Rollouts whose measurements changed.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr manager.Manager, measured <-chan event.TypedGenericEvent[types.NamespacedName]) error {
	for _, i := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.object, i.name, i.values); err != nil {
			return fmt.Errorf("index %s: %w", i.name, err)
		}
	}
	b := builder.ControllerManagedBy(mgr).Named("rollout").
		For(&v1alpha1.Rollout{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Rollout{}, handler.EnqueueRequestsFromMapFunc(r.rivalsOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&appsv1.Deployment{}, each(r.rolloutsOf(func(o client.Object) string { return claimWorkload(o.GetName()) }), rolloutByAnnotation), builder.WithPredicates(shell.Changes())).
		Watches(&corev1.Service{}, each(r.rolloutsOfService()...)).
		Watches(&splitv1.TrafficSplit{}, each(r.rolloutsOfSplit()...)).
		Watches(&appsv1.ReplicaSet{}, each(r.rolloutsOfReplicaSet), builder.WithPredicates(shell.Changes())).
		Watches(&v1alpha1.AnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.measuredBy(v1alpha1.KindAnalysisTemplate)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.TypedChannel(measured, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{GenericFunc: enqueue})).
		WatchesRawSource(source.TypedChannel(r.options.Metrics.Changed(), handler.TypedFuncs[types.NamespacedName, reconcile.Request]{GenericFunc: enqueue})).
		WatchesRawSource(source.TypedChannel(r.options.Outbox.Changed(), handler.TypedFuncs[types.NamespacedName, reconcile.Request]{GenericFunc: enqueue})).
		WithOptions(bounds.Options(r.options.Concurrency))
	if !r.options.NamespacedOnly {
		r.watchCluster(b)
	}
	for _, o := range r.options.Admission.objects() {
		b = b.Watches(o, handler.EnqueueRequestsFromMapFunc(r.everyRollout), builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return slices.Contains(r.options.Admission.names(), o.GetName())
		}), predicate.GenerationChangedPredicate{}))
	}
	if r.options.CanaryReleases {
		b = b.Watches(&v1alpha1.CanaryRelease{}, each(r.rolloutsOf(func(o client.Object) string { return claimCanaryRelease(o.GetName()) }), rolloutByDelegation))
	}
	c, err := b.Build(tracing.Reconciler("rollout", r))
	if err != nil {
		return err
	}
	r.contents.Start = func(ctx context.Context, p contents.Place) (client.Reader, error) {
		return r.watchContents(ctx, mgr, c, p)
	}
	return nil
}

// watchContents watches the metadata of a kind in one namespace, with a cache of its own:
// what no Rollout asks for is neither kept in memory nor read.
func (r *Reconciler) watchContents(ctx context.Context, mgr manager.Manager, c controller.Controller, p contents.Place) (client.Reader, error) {
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultNamespaces: map[string]cache.Config{p.Namespace: {}}, DefaultTransform: transformContent,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(objects); err != nil {
		return nil, err
	}
	if !objects.WaitForCacheSync(ctx) { // that it has begun: there is nothing in it yet
		return nil, ctx.Err()
	}
	concerned := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
		return r.contents.Changed(p.Kind, o, rolloutByLabel(ctx, o))
	})
	return objects, c.Watch(source.Kind(objects, partial(p.Kind), concerned))
}

// watchCluster watches what belongs to no namespace.
func (r *Reconciler) watchCluster(b *builder.Builder) {
	b.Watches(&v1alpha1.ClusterAnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.measuredBy(v1alpha1.KindClusterAnalysisTemplate)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ClusterMetricProvider{}, handler.EnqueueRequestsFromMapFunc(r.everyRollout), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Freeze{}, handler.EnqueueRequestsFromMapFunc(r.everyRollout), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.rolloutsIn), builder.WithPredicates(predicate.LabelChangedPredicate{}, changed()))
}

// rolloutsOfService find the Rollouts that a Service concerns.
func (r *Reconciler) rolloutsOfService() []handler.MapFunc {
	return []handler.MapFunc{r.rolloutsOf(func(o client.Object) string { return claimService(o.GetName()) }), rolloutByLabel, rolloutByPreview, r.rolloutsNeeding(claimService)}
}

// rolloutsOfSplit find the Rollouts that a TrafficSplit concerns.
func (r *Reconciler) rolloutsOfSplit() []handler.MapFunc {
	return []handler.MapFunc{rolloutByLabel, r.rolloutsNeeding(claimSplit)}
}

// each has the Rollouts reconciled that any of some functions finds, each once for an event: of
// two watches, the second may come when the reconcile for the first has begun, and cause another.
func each(find ...handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var found []reconcile.Request
		for _, f := range find {
			found = append(found, f(ctx, o)...)
		}
		return found
	})
}

// rolloutsOf finds the Rollouts that claim an object.
func (r *Reconciler) rolloutsOf(claim func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.claimants(ctx, o.GetNamespace(), claim(o))
	}
}

func (r *Reconciler) claimants(ctx context.Context, namespace, claim string) []reconcile.Request {
	return r.list(ctx, client.InNamespace(namespace), client.MatchingFields{indexClaims: claim})
}

// rivalsOf finds the other Rollouts that claim what this one claims: when it
// goes, one of them may begin.
func (r *Reconciler) rivalsOf(ctx context.Context, o client.Object) []reconcile.Request {
	ro, ok := o.(*v1alpha1.Rollout)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, claim := range claims(ro) {
		for _, req := range r.claimants(ctx, ro.Namespace, claim) {
			if req.Name != ro.Name {
				out = append(out, req)
			}
		}
	}
	return out
}

// rolloutByLabel finds the Rollout that an object was made for.
func rolloutByLabel(_ context.Context, o client.Object) []reconcile.Request {
	return rolloutNamed(o, o.GetLabels()[v1alpha1.LabelRollout])
}

// rolloutByAnnotation finds the Rollout that manages a Deployment, which may be gone.
func rolloutByAnnotation(_ context.Context, o client.Object) []reconcile.Request {
	return rolloutNamed(o, o.GetAnnotations()[v1alpha1.AnnotationRollout])
}

// rolloutByDelegation finds the Rollout that wrote a weight of a CanaryRelease, which may be
// gone.
func rolloutByDelegation(_ context.Context, o client.Object) []reconcile.Request {
	cr, ok := o.(*v1alpha1.CanaryRelease)
	if !ok || cr.Spec.Delegation == nil {
		return nil
	}
	return rolloutNamed(o, cr.Spec.Delegation.By)
}

// rolloutNamed is the Rollout of a name in the namespace of an object; "" is none.
func rolloutNamed(o client.Object, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// rolloutsOfReplicaSet finds the Rollout of a ReplicaSet, whichever controls it now.
func (r *Reconciler) rolloutsOfReplicaSet(ctx context.Context, o client.Object) []reconcile.Request {
	if marked := rolloutByLabel(ctx, o); len(marked) > 0 {
		return marked
	}
	found := r.list(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexNames: ofPairs})
	if c := metav1.GetControllerOfNoCopy(o); c != nil && c.Kind == "Deployment" {
		found = append(found, r.claimants(ctx, o.GetNamespace(), claimWorkload(c.Name))...)
	}
	return found
}

// rolloutsNeeding finds the Rollouts that need the name of an object: of two Services, other pods may be
// behind one now, as many as before; and what has no mark, and was in the way, may be gone.
func (r *Reconciler) rolloutsNeeding(name func(string) string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.list(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexNames: name(o.GetName())})
	}
}

// measuredBy finds the Rollouts that name a template: one of their namespace, or of
// the cluster.
func (r *Reconciler) measuredBy(kind string) handler.MapFunc {
	return func(ctx context.Context, template client.Object) []reconcile.Request {
		return r.list(ctx, client.InNamespace(template.GetNamespace()), client.MatchingFields{indexTemplates: templates.Name(kind, template.GetName())})
	}
}

func (r *Reconciler) everyRollout(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.list(ctx)
}

// rolloutsIn finds the Rollouts of a namespace, which another Freeze may concern
// now that its labels changed.
func (r *Reconciler) rolloutsIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(namespace.GetName()))
}

func (r *Reconciler) list(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	found := &v1alpha1.RolloutList{}
	// The list comes from the cache and fails only while it is not synced: every
	// Rollout is reconciled after that anyway. A handler of events must not wait for
	// the events of its own writes, which come after this one.
	opts = append(opts, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err := r.client.List(ctx, found, opts...); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return out
}

func enqueue(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.Add(reconcile.Request{NamespacedName: e.Object})
}

// changed lets pass only changes of objects that were there before.
func changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
