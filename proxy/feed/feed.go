// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

const (
	// debounce is how long changes are gathered before they are looked at.
	debounce = 20 * time.Millisecond
	// apiRetryFirst and apiRetryMost are how long to wait after the API failed.
	apiRetryFirst = 500 * time.Millisecond
	apiRetryMost  = 30 * time.Second
)

// Want is what is to be served.
type Want struct {
	// Split with every reference resolved. Without ports there is nothing that can
	// be served.
	Split traffic.Split
	// Problems of resolving it.
	Problems []traffic.Problem
}

// Options are what a Feed needs.
type Options struct {
	// Split that the agent serves.
	Split types.NamespacedName
	// Cluster to read.
	Cluster Cluster
	// Clock that retries wait by.
	Clock clock.WithTicker
	// Log of the feed.
	Log logr.Logger
}

// Feed is the agent's side of a TrafficSplit in a Kubernetes API. It watches the one
// split and the Services of its namespace, and its HTTPRouteGroups once the split
// refers to one. When the split is being deleted or is gone, it wants nothing new.
type Feed struct {
	Options
	changed chan struct{}
	wants   chan Want

	// The rest belongs to the goroutine of Run.

	last *Want
	// groups is set while HTTPRouteGroups are watched.
	groups cache.Informer
}

// New makes a feed that does nothing before Run.
func New(opts Options) *Feed {
	return &Feed{Options: opts, changed: make(chan struct{}, 1), wants: make(chan Want, 1)}
}

// Wants delivers what is to be served whenever it changes. One that was not taken is
// replaced by the next.
func (f *Feed) Wants() <-chan Want { return f.wants }

// signal asks Run to look again.
func (f *Feed) signal() {
	select {
	case f.changed <- struct{}{}:
	default: // it is going to look anyway
	}
}

// Run keeps the feed going until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- f.Cluster.Cache.Start(ctx) }()
	if err := f.watch(ctx); err != nil {
		return err
	}
	f.signal()
	var retry <-chan time.Time
	backoff := apiRetryFirst
	for {
		select {
		case <-f.changed:
		case <-retry:
		case err := <-stopped:
			return err
		}
		if !f.gather(ctx) {
			return <-stopped
		}
		retry = nil
		after, err := f.reconcile(ctx)
		if err != nil {
			f.Log.Error(err, "Could not read or serve the TrafficSplit; trying again", "TrafficSplit", klog.KRef(f.Split.Namespace, f.Split.Name), "after", backoff.String())
			retry = f.Clock.After(backoff)
			backoff = min(2*backoff, apiRetryMost)
			continue
		}
		backoff = apiRetryFirst
		if after > 0 {
			retry = f.Clock.After(after)
		}
	}
}

// gather waits for the rest of a burst of changes. It returns false when the
// context has ended.
func (f *Feed) gather(ctx context.Context) bool {
	select {
	case <-f.Clock.After(debounce):
	case <-ctx.Done():
		return false
	}
	select {
	case <-f.changed:
	default:
	}
	return true
}

// watch begins to watch, and returns when everything that exists has been seen.
func (f *Feed) watch(ctx context.Context) error {
	for _, object := range []client.Object{&splitv1.TrafficSplit{}, &corev1.Service{}} {
		if _, err := f.watchKind(ctx, object); err != nil {
			return err
		}
	}
	if !f.Cluster.Cache.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	return nil
}

// watchKind begins to watch a kind and does not wait for anything.
func (f *Feed) watchKind(ctx context.Context, object client.Object) (cache.Informer, error) {
	informer, err := f.Cluster.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", object, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.signal() },
		UpdateFunc: func(any, any) { f.signal() },
		DeleteFunc: func(any) { f.signal() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", object, err)
	}
	return informer, nil
}

// reconcile brings the agent what is to be served, and says when to look again if nothing
// changes.
func (f *Feed) reconcile(ctx context.Context) (after time.Duration, err error) {
	split := &splitv1.TrafficSplit{}
	if err := f.Cluster.Cache.Get(ctx, f.Split, split); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	return f.want(ctx, split, false)
}

// want resolves the split, of the cache or live, and hands it to the agent when it differs from
// before.
func (f *Feed) want(ctx context.Context, split *splitv1.TrafficSplit, live bool) (after time.Duration, err error) {
	// Its backends go when the split does. But an agent that starts only now still
	// has the traffic that comes until the Service is restored.
	if !split.DeletionTimestamp.IsZero() && f.last != nil {
		return 0, nil
	}
	services, err := f.services(ctx, split)
	if err != nil {
		return 0, err
	}
	groups, err := f.routeGroups(ctx, split)
	if err != nil {
		return 0, err
	}
	known := resolve.Known{Services: services, Groups: groups, Proxied: true}
	if !live && lacks(known, split) {
		// What a split no longer names may go, and its watch may be faster than that of the split.
		now := &splitv1.TrafficSplit{}
		if err := f.Cluster.Client.Get(ctx, f.Split, now); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		return f.want(ctx, now, true)
	}
	after = resolve.Settle(split, services, f.Clock.Now())
	resolved, problems := resolve.Split(split, known)
	want := Want{Split: resolved, Problems: problems}
	if f.last != nil && reflect.DeepEqual(*f.last, want) {
		return after, nil
	}
	f.last = &want
	select {
	case <-f.wants: // the agent has not taken the one before: it is out of date
	default:
	}
	f.wants <- want
	return after, nil
}

// lacks tells whether something that the split names does not exist.
func lacks(known resolve.Known, split *splitv1.TrafficSplit) bool {
	return slices.ContainsFunc(resolve.ServiceNames(split), func(name string) bool { return known.Services[name] == nil }) ||
		slices.ContainsFunc(resolve.GroupNames(split), func(name string) bool { return known.Groups[name] == nil })
}

// services are the Services of the namespace by name.
//
// The split and the Services arrive by different watches, so a backend may exist
// that the cache does not have yet. Serving without it would be a wrong answer to
// "which generation is served", so a Service that seems to be missing is
// looked for in the API itself.
func (f *Feed) services(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*corev1.Service, error) {
	var list corev1.ServiceList
	if err := f.Cluster.Cache.List(ctx, &list, client.InNamespace(f.Split.Namespace)); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	services := make(map[string]*corev1.Service, len(list.Items))
	for i := range list.Items {
		services[list.Items[i].Name] = &list.Items[i]
	}
	for _, name := range resolve.ServiceNames(split) {
		if services[name] != nil {
			continue
		}
		service := &corev1.Service{}
		err := f.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: f.Split.Namespace, Name: name}, service)
		switch {
		case err == nil:
			services[name] = service
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get Service %s: %w", name, err)
		}
	}
	return services, nil
}

// forgetGroups ends the watch of HTTPRouteGroups: a split that needs none gives its
// proxies no right to it.
func (f *Feed) forgetGroups(ctx context.Context) error {
	if f.groups == nil {
		return nil
	}
	f.groups = nil
	return f.Cluster.Cache.RemoveInformer(ctx, &specsv1.HTTPRouteGroup{})
}

// errGroupsUnknown is the error of a watch that has not begun. Its first event, or
// the next attempt, goes on.
var errGroupsUnknown = errors.New("the HTTPRouteGroups of the namespace are not known yet")

// routeGroups are the HTTPRouteGroups that a split refers to, by name. They are
// watched only while the split needs them: most need none, and not every cluster
// has the kind. As with Services, one that seems to be missing is looked
// for in the API itself.
func (f *Feed) routeGroups(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*specsv1.HTTPRouteGroup, error) {
	names := resolve.GroupNames(split)
	if len(names) == 0 {
		return nil, f.forgetGroups(ctx)
	}
	if f.groups == nil {
		informer, err := f.watchKind(ctx, &specsv1.HTTPRouteGroup{})
		if err != nil {
			return nil, err
		}
		f.groups = informer
	}
	if !f.groups.HasSynced() {
		return nil, errGroupsUnknown
	}
	groups := make(map[string]*specsv1.HTTPRouteGroup, len(names))
	for _, name := range names {
		key := types.NamespacedName{Namespace: f.Split.Namespace, Name: name}
		group := &specsv1.HTTPRouteGroup{}
		err := f.Cluster.Cache.Get(ctx, key, group)
		if apierrors.IsNotFound(err) {
			err = f.Cluster.Client.Get(ctx, key, group)
		}
		switch {
		case err == nil:
			groups[name] = group
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get HTTPRouteGroup %s: %w", name, err)
		}
	}
	return groups, nil
}
