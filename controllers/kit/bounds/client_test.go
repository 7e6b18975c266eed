// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var stuck, fine = types.NamespacedName{Namespace: "shop", Name: "stuck"}, types.NamespacedName{Namespace: "shop", Name: "fine"}

// neverCatchesUp is a client whose cache never has the last write to the object stuck: its
// reads end as those of controller-runtime do, with their context.
func neverCatchesUp(t *testing.T, ended func(context.Context) error) client.Client {
	t.Helper()
	object := func(n types.NamespacedName) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
	}
	c := fake.NewClientBuilder().WithObjects(object(stuck), object(fine)).Build()
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key == stuck {
				<-ctx.Done()
				return ended(ctx)
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ended(ctx)
		},
	})
}

func contextError(ctx context.Context) error { return ctx.Err() }

func answers(context.Context) error { return nil }

func TestAReadEndsWhenTheCacheDoesNotFollow(t *testing.T) {
	for name, test := range map[string]struct {
		read func(context.Context, client.Client) error
		want string
	}{
		"of an object": {
			read: func(ctx context.Context, c client.Client) error { return c.Get(ctx, stuck, &corev1.Service{}) },
			want: "the cache of Service shop/stuck does not have the operator's own last write after 10s",
		},
		"of a list": {
			read: func(ctx context.Context, c client.Client) error {
				return c.List(ctx, &corev1.ServiceList{}, client.InNamespace("shop"))
			},
			want: "the cache of Service shop does not have the operator's own last write after 10s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := NewClient(neverCatchesUp(t, contextError), NewCaches(clock.RealClock{}, answers))
				began := time.Now()
				err := test.read(t.Context(), c)
				if err == nil || !strings.HasPrefix(err.Error(), test.want) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != CacheWait {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// A caller that waits for less is no sign of a cache that is stuck, nor is a kind that
// can't be listed.
func TestOnlyAWriteThatDoesNotAppearIsLate(t *testing.T) {
	for name, test := range map[string]struct {
		wait  time.Duration
		ended func(context.Context) error
		late  bool
	}{
		"the own last write does not appear": {wait: time.Minute, ended: contextError, late: true},
		"the caller waits for less":          {wait: time.Second, ended: contextError},
		"the cache was never filled": {wait: time.Minute, ended: func(context.Context) error {
			return apierrors.NewTimeoutError("failed waiting for *v1.Service Informer to sync", 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caches := NewCaches(clock.RealClock{}, answers)
				c := NewClient(neverCatchesUp(t, test.ended), caches)
				for range 60 {
					ctx, cancel := context.WithTimeout(t.Context(), test.wait)
					if err := c.Get(ctx, stuck, &corev1.Service{}); err == nil {
						t.Fatal("it was read")
					}
					cancel()
					time.Sleep(MaxRetry) // of the bubble, in no time
					_ = caches.Follow(httptest.NewRequest(http.MethodGet, "/healthz", nil))
				}
				if err := caches.Follow(httptest.NewRequest(http.MethodGet, "/healthz", nil)); (err != nil) != test.late {
					t.Errorf("alive: %v", err)
				}
				if series := testutil.CollectAndCount(caches, "serin_cache_behind_seconds", "serin_cache_late_reads_total"); (series == 2) != test.late {
					t.Errorf("%d series", series)
				}
			})
		})
	}
}

func TestAReplicaIsReadyWithFilledCaches(t *testing.T) {
	caches := NewCaches(clock.RealClock{}, answers)
	if caches.Filled(nil) == nil {
		t.Error("ready before the manager started it")
	}
	if err := caches.Start(t.Context()); err != nil || caches.NeedLeaderElection() || caches.Filled(nil) != nil {
		t.Error("not ready with filled caches")
	}
}

// tries counts the reconciles of each object, and how long one took at most.
type tries struct {
	sync.Mutex
	of      map[types.NamespacedName]int
	longest time.Duration
}

// run has a controller with the options of all controllers reconcile two objects, by as
// many workers as there are objects that get stuck.
func run(ctx context.Context, t *testing.T, do func(context.Context, reconcile.Request) error) *tries {
	t.Helper()
	count := &tries{of: map[types.NamespacedName]int{}}
	options := Options(1)
	options.SkipNameValidation = new(true)
	options.LogConstructor = func(*reconcile.Request) logr.Logger { return logr.Discard() }
	options.Reconciler = reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		began := time.Now()
		err := do(ctx, req)
		count.Lock()
		defer count.Unlock()
		count.of[req.NamespacedName]++
		count.longest = max(count.longest, time.Since(began))
		return reconcile.Result{RequeueAfter: time.Second}, err
	})
	c, err := controller.NewUnmanaged("test", options)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.Add(reconcile.Request{NamespacedName: stuck})
		q.Add(reconcile.Request{NamespacedName: fine})
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestOtherObjectsGoOnWhileOneWaits(t *testing.T) {
	for name, test := range map[string]struct {
		do      func(client.Client) func(context.Context, reconcile.Request) error
		longest time.Duration
	}{
		"for its cache": {
			do: func(c client.Client) func(context.Context, reconcile.Request) error {
				return func(ctx context.Context, req reconcile.Request) error {
					return c.Get(ctx, req.NamespacedName, &corev1.Service{})
				}
			},
			longest: CacheWait,
		},
		"for a request that hangs": {
			do: func(client.Client) func(context.Context, reconcile.Request) error {
				return func(ctx context.Context, req reconcile.Request) error {
					if req.NamespacedName == stuck {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
			},
			longest: Deadline,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				c := NewClient(neverCatchesUp(t, contextError), NewCaches(clock.RealClock{}, answers))
				count := run(ctx, t, test.do(c))
				if count.longest != test.longest || count.of[stuck] < 5 || count.of[fine] < 5 {
					t.Errorf("reconciles: %v, the longest of %s", count.of, count.longest)
				}
			})
		})
	}
}
