// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/traffic"
)

// Names of the indexes of the cache that this package reads, beside traffic.IndexProxy. The
// controller of TrafficSplits makes them.
const (
	// IndexService of an EndpointSlice is the name of its Service.
	IndexService = traffic.IndexEndpoints
	// IndexHolder of a Service is the split that leads it.
	IndexHolder = "trafficsplit.serin.dev/holder"
)

// staleRetry is when to look again after a write that failed because the cache was behind.
// The event that brings the cache up to date normally comes first.
const staleRetry = time.Second

// Reconciler keeps the EndpointSlices of proxies up to date.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// FieldOwner of the writes.
	FieldOwner client.FieldOwner
	// PodZones takes the zone of a proxy from its labels, where nodes may not be read.
	PodZones bool
}

// Reconcile brings the EndpointSlices of a split's proxies up to date. It makes no slice for
// a Service that does not have the key of the proxies: whether there are to be any, only the
// controller of TrafficSplits knows.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	services, err := r.services(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	for _, service := range services {
		errs = append(errs, r.bring(ctx, service, req.Name, service.Spec.Selector[traffic.LabelProxy] == req.Name))
	}
	if err = errors.Join(errs...); stale(err) {
		log.FromContext(ctx).V(1).Info("The object changed after it was read; trying again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{}, err
}

// Lead makes the proxies of a split endpoints of a Service.
func (r *Reconciler) Lead(ctx context.Context, service *corev1.Service, split string) error {
	return r.bring(ctx, service, split, true)
}

// bring writes only what the API server's own list of the pods asks for, and reads that after the
// slices. Every replica of the operator is at this, and the one whose watch of the pods hangs
// would otherwise put endpoints back that another has just removed.
func (r *Reconciler) bring(ctx context.Context, service *corev1.Service, split string, create bool) error {
	of := types.NamespacedName{Namespace: service.Namespace, Name: split}
	existing, err := r.Slices(ctx, of, service.Name)
	if err != nil {
		return err
	}
	changes, missing, err := r.diff(ctx, service, split, create, existing, r.Client, client.MatchingFields{traffic.IndexProxy: split}, client.UnsafeDisableDeepCopy)
	if err != nil || changes.None() {
		return errors.Join(err, missing)
	}
	changes, missing, err = r.diff(ctx, service, split, create, existing, r.Live, client.MatchingLabels{traffic.LabelProxy: split})
	if err != nil {
		return err
	}
	return errors.Join(r.write(ctx, changes), missing)
}

// diff is what has to be written for the proxies that a reader lists, and why it is not all.
func (r *Reconciler) diff(ctx context.Context, service *corev1.Service, split string, create bool, existing []*discoveryv1.EndpointSlice,
	reader client.Reader, of ...client.ListOption,
) (changes Changes, missing, err error) {
	var list corev1.PodList
	if err := reader.List(ctx, &list, append(of, client.InNamespace(service.Namespace))...); err != nil {
		return Changes{}, nil, fmt.Errorf("list the proxies' pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	var known corelisters.NodeLister = nodes{ctx: ctx, client: r.Client}
	if r.PodZones {
		known = podZones{pods: pods}
	}
	changes, missing = Diff(service, split, pods, existing, known)
	if !create {
		changes.Create = nil
		changes.Update = slices.DeleteFunc(changes.Update, func(s *discoveryv1.EndpointSlice) bool { return onlyLeaves(s, existing) })
	}
	return changes, missing, nil
}

// onlyLeaves reports whether a slice differs from what it was by nothing but proxies that
// were terminating already. Of a Service that does not have the key of the proxies, the app's
// own pods get new requests: a proxy that goes on stopping there changes nothing for clients, and
// the slice is deleted when the last of them is gone.
func onlyLeaves(next *discoveryv1.EndpointSlice, existing []*discoveryv1.EndpointSlice) bool {
	at := slices.IndexFunc(existing, func(s *discoveryv1.EndpointSlice) bool { return s.Name == next.Name })
	if at < 0 {
		return false
	}
	before, after := existing[at].DeepCopy(), next.DeepCopy()
	left := map[types.UID]bool{}
	for i := range before.Endpoints {
		left[podOf(&before.Endpoints[i])] = ptr.Deref(before.Endpoints[i].Conditions.Terminating, false)
	}
	if len(after.Endpoints) == 0 {
		after.Ports = before.Ports // of no endpoint there are none
	}
	for _, s := range []*discoveryv1.EndpointSlice{before, after} {
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return left[podOf(&e)] })
		slices.SortFunc(s.Endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(podOf(&a), podOf(&b)) })
	}
	return equality.Semantic.DeepEqual(before, after)
}

// podOf is the UID of an endpoint's pod; "" where another actor removed it.
func podOf(e *discoveryv1.Endpoint) types.UID {
	return ptr.Deref(e.TargetRef, corev1.ObjectReference{}).UID
}

// write creates first, so that endpoints that move to another slice are never in none.
func (r *Reconciler) write(ctx context.Context, changes Changes) error {
	for _, slice := range changes.Create {
		if err := r.Client.Create(ctx, slice, r.FieldOwner); err != nil {
			return fmt.Errorf("create EndpointSlice %q: %w", slice.Name, err)
		}
	}
	for _, slice := range changes.Update {
		if err := r.Client.Update(ctx, slice, r.FieldOwner); err != nil {
			return fmt.Errorf("update EndpointSlice %q: %w", slice.Name, err)
		}
	}
	for _, slice := range changes.Delete {
		seen := metav1.Preconditions{UID: &slice.UID, ResourceVersion: &slice.ResourceVersion}
		if err := r.Client.Delete(ctx, slice, client.Preconditions(seen)); err != nil {
			return fmt.Errorf("delete EndpointSlice %q: %w", slice.Name, err)
		}
	}
	return nil
}

// stale is true for what another replica wrote first.
func stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// services are those that have the key of a split's proxies, and those for which there are
// EndpointSlices of them.
func (r *Reconciler) services(ctx context.Context, of types.NamespacedName) ([]*corev1.Service, error) {
	var held corev1.ServiceList
	if err := r.Client.List(ctx, &held, client.InNamespace(of.Namespace), client.MatchingFields{IndexHolder: of.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Services that the split leads: %w", err)
	}
	var out []*corev1.Service
	known := map[string]bool{}
	for i := range held.Items {
		if held.Items[i].Spec.Selector[traffic.LabelProxy] == of.Name {
			known[held.Items[i].Name] = true
			out = append(out, &held.Items[i])
		}
	}
	existing, err := r.Slices(ctx, of, "")
	if err != nil {
		return nil, err
	}
	for _, slice := range existing {
		name := slice.Labels[discoveryv1.LabelServiceName]
		if known[name] {
			continue
		}
		known[name] = true
		service := &corev1.Service{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: name}, service, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue // the garbage collector deletes its slices
		}
		if err != nil {
			return nil, fmt.Errorf("read Service %q: %w", name, err)
		}
		out = append(out, service)
	}
	return out, nil
}

// Slices are the EndpointSlices of a split's proxies: those of one Service, or of all for "".
// They are shared with the cache and must not be changed.
func (r *Reconciler) Slices(ctx context.Context, of types.NamespacedName, service string) ([]*discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &list, client.InNamespace(of.Namespace), client.MatchingFields{traffic.IndexProxy: of.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of the proxies: %w", err)
	}
	var out []*discoveryv1.EndpointSlice
	for i := range list.Items {
		slice := &list.Items[i]
		if Ours(slice) && slice.DeletionTimestamp.IsZero() && (service == "" || slice.Labels[discoveryv1.LabelServiceName] == service) {
			out = append(out, slice)
		}
	}
	return out, nil
}

// Ours is true for an EndpointSlice that this package manages.
func Ours(slice client.Object) bool {
	return slice.GetLabels()[discoveryv1.LabelManagedBy] == ManagedBy
}
