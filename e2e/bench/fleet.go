// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	// writers is how many requests people make at the same time.
	writers = 24
	// lookPeriod is how often the fleet is looked at, in a cache.
	lookPeriod = 200 * time.Millisecond
	// tellPeriod is how often it is told how far the fleet is.
	tellPeriod = 15 * time.Second
	// patience is how long nothing may change while the fleet is waited for.
	patience = 5 * time.Minute
)

var errRolledBack = errors.New("a release was rolled back, so there is nothing to compare")

// fleet are the apps of one measurement.
type fleet struct {
	name     string
	apps     []app
	replicas int32
	router   v1alpha1.RouterName
	hold     time.Duration
}

func newFleet(name string, size int, replicas int32, o Options) fleet {
	f := fleet{name: name, replicas: replicas, router: o.Router, hold: o.Hold}
	for i := range size {
		f.apps = append(f.apps, app{
			namespace: fmt.Sprintf("%s-%03d", name, i/o.PerNamespace),
			name:      fmt.Sprintf("%s%04d", appPrefix, i%o.PerNamespace),
		})
	}
	return f
}

// create makes namespaces and apps.
func (f fleet) create(ctx context.Context, c client.Client) error {
	if err := f.createNamespaces(ctx, c); err != nil {
		return err
	}
	return f.each(ctx, func(ctx context.Context, a app) error {
		for _, o := range f.makeApp(a) {
			if err := c.Create(ctx, o); err != nil {
				return fmt.Errorf("create %T %s/%s: %w", o, a.namespace, a.name, err)
			}
		}
		return nil
	})
}

func (f fleet) createNamespaces(ctx context.Context, c client.Client) error {
	seen := map[string]bool{}
	for _, a := range f.apps {
		if seen[a.namespace] {
			continue
		}
		seen[a.namespace] = true
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}); err != nil {
			return fmt.Errorf("create a namespace: %w", err)
		}
	}
	return nil
}

// release changes every template, as kubectl set image does.
func (f fleet) release(ctx context.Context, c client.Client) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, imageV2)
	return f.each(ctx, func(ctx context.Context, a app) error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}}
		if err := c.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			return fmt.Errorf("change the template of %s/%s: %w", a.namespace, a.name, err)
		}
		return nil
	})
}

// each calls do for all apps, some at the same time, and returns the first error.
func (f fleet) each(ctx context.Context, do func(context.Context, app) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan app)
	var running sync.WaitGroup
	for range min(writers, len(f.apps)) {
		running.Go(func() {
			for a := range queue {
				if err := do(ctx, a); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, a := range f.apps {
		select {
		case queue <- a:
		case <-ctx.Done():
		}
	}
	close(queue)
	running.Wait()
	return context.Cause(ctx)
}

// crowd watches the Rollouts of a fleet.
type crowd struct {
	fleet
	rollouts client.Reader
	operator *operator
	clock    clock.WithTicker
	out      io.Writer
}

// watchRollouts keeps a cache until ctx ends.
func watchRollouts(ctx context.Context, s *stage) (client.Reader, error) {
	c, err := cache.New(s.plane.Config, cache.Options{Scheme: newScheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, err
	}
	if _, err := c.GetInformer(ctx, &v1alpha1.Rollout{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the Rollouts: %w", err)
	}
	go func() { _ = c.Start(ctx) }() // it ends with ctx, and a cache that never syncs shows below
	if !c.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the Rollouts: %w", context.Cause(ctx))
	}
	return c, nil
}

// settled means that the present version is stable and nothing is under way.
func settled(ro *v1alpha1.Rollout) bool {
	c := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == ro.Generation && ro.Status.Stable != nil
}

// promoted means that the second version is.
func promoted(ro *v1alpha1.Rollout) bool {
	return settled(ro) && len(ro.Status.History) > 1 && ro.Status.History[0].Outcome == v1alpha1.OutcomePromoted
}

// wait returns when all Rollouts are as wanted.
func (c crowd) wait(ctx context.Context, what string, is func(*v1alpha1.Rollout) bool) error {
	ticker := c.clock.NewTicker(lookPeriod)
	defer ticker.Stop()
	var progress struct {
		n              int
		at, reportedAt time.Time
	}
	progress.at, progress.reportedAt = c.clock.Now(), c.clock.Now()
	for {
		n, err := c.count(ctx, is)
		if err != nil || n == len(c.apps) {
			return err
		}
		now := c.clock.Now()
		if n != progress.n {
			progress.n, progress.at = n, now
		}
		if now.Sub(progress.at) > patience+c.hold*time.Duration(len(Weights)) {
			return fmt.Errorf("%d of %d Rollouts are %s, and none of the others became so for %s", n, len(c.apps), what, patience)
		}
		if now.Sub(progress.reportedAt) > tellPeriod {
			progress.reportedAt = now
			fmt.Fprintf(c.out, "  %d of %d are %s\n", n, len(c.apps), what)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c crowd) count(ctx context.Context, is func(*v1alpha1.Rollout) bool) (int, error) {
	if err := c.operator.running(); err != nil {
		return 0, err
	}
	list := &v1alpha1.RolloutList{}
	if err := c.rollouts.List(ctx, list, client.MatchingLabels{fleetLabel: c.name}, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list the Rollouts: %w", err)
	}
	n := 0
	for i := range list.Items {
		ro := &list.Items[i]
		if d := ro.Status.Decision; d != nil && d.Action == v1alpha1.ActionRollBack {
			return n, fmt.Errorf("%w: %s/%s: %s", errRolledBack, ro.Namespace, ro.Name, d.Message)
		}
		if is(ro) {
			n++
		}
	}
	return n, nil
}
