// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// CacheWait is how long a read waits for a cache. A cache follows the API within
// milliseconds, and a reconcile that ends too early is only tried again.
const CacheWait = 10 * time.Second

var errCacheWait = errors.New("the time for a read of a cache is over")

// NewClient has the reads of c end after CacheWait, and reports to caches how each ended.
// Without it, a read waits without end for the operator's own last write to appear in the
// cache, and so does every worker when a watch is stuck.
func NewClient(c client.Client, caches *Caches) client.Client {
	return &boundedClient{Client: c, caches: caches}
}

type boundedClient struct {
	client.Client
	caches *Caches
}

func (c *boundedClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.read(ctx, object, Read{Namespace: key.Namespace, Name: key.Name}, func(ctx context.Context) error {
		return c.Client.Get(ctx, key, object, options...)
	})
}

func (c *boundedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
	return c.read(ctx, list, Read{Namespace: namespace}, func(ctx context.Context) error {
		return c.Client.List(ctx, list, options...)
	})
}

// read bounds one read of a cache. Objects without a type are read from the API.
func (c *boundedClient) read(ctx context.Context, object runtime.Object, what Read, do func(context.Context) error) error {
	if _, live := object.(runtime.Unstructured); live {
		return do(ctx)
	}
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return err
	}
	what.Kind = strings.TrimSuffix(gvk.Kind, "List")
	bounded, cancel := context.WithTimeoutCause(ctx, CacheWait, errCacheWait)
	defer cancel()
	err = do(bounded)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		c.caches.caughtUp(what)
		return err
	case !errors.Is(context.Cause(bounded), errCacheWait):
		return err // of another cause, or the caller's time is over
	case apierrors.IsTimeout(err):
		// The cache was never filled: the kind can't be listed, of which a restart
		// changes nothing.
		return fmt.Errorf("the cache of %s was not filled within %s: %w", what, CacheWait, err)
	}
	c.caches.late(what)
	return fmt.Errorf("the cache of %s does not have the operator's own last write after %s: %w", what, CacheWait, err)
}
