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

// troubleOf is what an error means for the page.
func troubleOf(err error) *trouble {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &trouble{"forbidden", view.Sentence(cli.Explained(err).Error())}
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return &trouble{"missing", "The cluster serves no Rollouts: install Serin, or look at another cluster. " + err.Error()}
	}
	return &trouble{"unreachable", "The cluster does not answer, and is asked again: " + err.Error()}
}

// rollouts watches Rollouts with the client of a viewer, and notes whether that succeeds.
type rollouts struct {
	api       client.WithWatch
	namespace string
	name      string // "" for all
	report    func(*trouble)
}

// follow keeps a store up to date until the context is done.
func (r *rollouts) follow(ctx context.Context, store cache.ReflectorStore) {
	quiet := klog.Logger{} // the page says what is wrong
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}, r)
	reflector := cache.NewReflectorWithOptions(source, &v1alpha1.Rollout{}, store, cache.ReflectorOptions{Name: "dashboard", Logger: &quiet})
	reflector.RunWithContext(klog.NewContext(ctx, quiet))
}

func (r *rollouts) options(o metav1.ListOptions) *client.ListOptions {
	if r.name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, r.name).String()
	}
	return &client.ListOptions{Namespace: r.namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue}
}

func (r *rollouts) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := &v1alpha1.RolloutList{}
	err := r.api.List(ctx, list, r.options(o))
	if ctx.Err() == nil && !apierrors.IsResourceExpired(err) { // of which the Reflector takes care
		r.report(troubleOf(err))
	}
	return list, err
}

func (r *rollouts) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.api.Watch(ctx, &v1alpha1.RolloutList{}, r.options(o))
	if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		r.report(troubleOf(err))
	}
	return w, err
}

// IsWatchListSemanticsUnSupported has the Reflector list first: a page is complete when the
// list has come, and clients of tests do not know the other way.
func (r *rollouts) IsWatchListSemanticsUnSupported() bool { return true }

// rolloutOf is what a Reflector hands over.
func rolloutOf(object any) (*v1alpha1.Rollout, error) {
	ro, ok := object.(*v1alpha1.Rollout)
	if !ok {
		return nil, fmt.Errorf("%T is no Rollout", object)
	}
	return ro, nil
}

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
