// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// trouble is why nothing new is seen at present.
type trouble struct {
	// Kind is forbidden, missing, or unreachable.
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// troubleOf is what an error means for a page of objects of a kind.
func (k kind) troubleOf(err error) *trouble {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &trouble{"forbidden", view.Sentence(cli.Explained(err).Error())}
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return &trouble{"missing", fmt.Sprintf("The cluster serves no %s: install Serin, or look at another cluster. %v", k.plural, err)}
	}
	return &trouble{"unreachable", "The cluster does not answer. The page tries again by itself: " + err.Error()}
}

// kind is what a page watches.
type kind struct {
	plural string
	object client.Object
	list   client.ObjectList
}

// Kinds of the pages.
var (
	rollouts       = kind{"Rollouts", &v1alpha1.Rollout{}, &v1alpha1.RolloutList{}}
	canaryReleases = kind{"CanaryReleases", &v1alpha1.CanaryRelease{}, &v1alpha1.CanaryReleaseList{}}
	trafficSplits  = kind{"TrafficSplits", &splitv1.TrafficSplit{}, &splitv1.TrafficSplitList{}}
)

// empty is a list of the kind.
func (k kind) empty() client.ObjectList {
	return k.list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // it is a copy of one
}

// watcher watches objects with the client of a viewer, and notes whether that succeeds.
type watcher struct {
	kind
	api       client.WithWatch
	namespace string
	name      string // "" for all
	report    func(*trouble)
}

// follow keeps a store up to date until the context is done.
func (w *watcher) follow(ctx context.Context, store cache.ReflectorStore) {
	quiet := klog.Logger{} // the page says what is wrong
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: w.read, WatchFuncWithContext: w.watch}, w)
	reflector := cache.NewReflectorWithOptions(source, w.object, store, cache.ReflectorOptions{Name: "dashboard", Logger: &quiet})
	reflector.RunWithContext(klog.NewContext(ctx, quiet))
}

func (w *watcher) options(o metav1.ListOptions) *client.ListOptions {
	if w.name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	}
	return &client.ListOptions{Namespace: w.namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue}
}

func (w *watcher) read(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := w.empty()
	err := w.api.List(ctx, list, w.options(o))
	if ctx.Err() == nil && !apierrors.IsResourceExpired(err) { // of which the Reflector takes care
		w.report(w.troubleOf(err))
	}
	return list, err
}

func (w *watcher) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	seen, err := w.api.Watch(ctx, w.empty(), w.options(o))
	if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		w.report(w.troubleOf(err))
	}
	return seen, err
}

// IsWatchListSemanticsUnSupported has the Reflector list first: a page is complete when the
// list has come, and clients of tests do not know the other way.
func (w *watcher) IsWatchListSemanticsUnSupported() bool { return true }

// mailbox wakes who waits for something new. The zero value is not usable.
type mailbox struct {
	mu   sync.Mutex
	wake chan struct{}
}

func newMailbox() mailbox { return mailbox{wake: make(chan struct{}, 1)} }

// change changes what the mailbox guards, and wakes.
func (m *mailbox) change(f func()) {
	m.mu.Lock()
	f()
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // is awake already
	}
}
