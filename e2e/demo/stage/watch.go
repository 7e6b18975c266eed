// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/story"
)

const (
	// period is how often the load generator is asked, and the longest time
	// between two snapshots.
	period = time.Second
	// answerLimit bounds how long the load generator may take to answer.
	answerLimit = 2 * time.Second
	// patience is how long the load generator may be silent before that is a problem.
	patience = 5 * time.Second
)

// watcher holds the latest state of the demo.
type watcher struct {
	clock clock.Clock
	core  kubernetes.Interface
	// changed holds a token when something changed since the last snapshot.
	changed chan struct{}
	// reader is the cache, nil until it is started.
	reader client.Reader

	mu   sync.Mutex
	load *generator.Report
	// loadErr is why the latest report is missing; loadSince is since when the
	// generator is expected to answer or, later, when it answered last.
	loadErr   error
	loadSince time.Time
}

func newWatcher(clk clock.Clock, core kubernetes.Interface) *watcher {
	return &watcher{clock: clk, core: core, changed: make(chan struct{}, 1)}
}

// start begins to watch until ctx is done. The kinds of Serin have to be there.
func (w *watcher) start(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	c, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{Namespace: {}}})
	if err != nil {
		return fmt.Errorf("watch the demo: %w", err)
	}
	notify := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.notify() },
		UpdateFunc: func(any, any) { w.notify() },
		DeleteFunc: func(any) { w.notify() },
	}
	for _, kind := range []client.Object{&serinv1alpha1.Rollout{}, &splitv1alpha4.TrafficSplit{}, &corev1.Pod{}, &appsv1.ReplicaSet{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(notify); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	go func() {
		// The cache ends with ctx; another end shows as snapshots that can't be read.
		_ = c.Start(ctx)
	}()
	if !c.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch the demo: %w", context.Cause(ctx))
	}
	w.reader = c
	go w.pollLoad(ctx)
	return nil
}

func (w *watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// expectLoad notes that the load generator should answer from now on.
func (w *watcher) expectLoad() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loadSince = w.clock.Now()
}

func (w *watcher) pollLoad(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(period):
		}
		if w.isLoadExpected() {
			report, err := fetchReport(ctx, w.core)
			w.setLoad(report, err)
			w.notify()
		}
	}
}

func (w *watcher) isLoadExpected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.loadSince.IsZero()
}

func (w *watcher) setLoad(report *generator.Report, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loadErr = err
	if err == nil {
		w.load, w.loadSince = report, w.clock.Now()
	}
}

// fetchReport asks the load generator through the API server.
func fetchReport(ctx context.Context, core kubernetes.Interface) (*generator.Report, error) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	content, err := core.CoreV1().Services(Namespace).ProxyGet("http", "load", "http", "/report", nil).DoRaw(limited)
	if err != nil {
		return nil, fmt.Errorf("ask the load generator: %w", err)
	}
	var report generator.Report
	if err := json.Unmarshal(content, &report); err != nil {
		return nil, fmt.Errorf("read the load generator's report: %w", err)
	}
	return &report, nil
}

// Next implements story.Observer.
func (s *Stage) Next(ctx context.Context) (story.Snapshot, error) { return s.watcher.next(ctx) }

func (w *watcher) next(ctx context.Context) (story.Snapshot, error) {
	select {
	case <-ctx.Done():
		return story.Snapshot{}, context.Cause(ctx)
	case <-w.changed:
	case <-w.clock.After(period):
	}
	snapshot := story.Snapshot{Time: w.clock.Now()}
	if w.reader != nil {
		if err := w.read(ctx, &snapshot); err != nil {
			snapshot.Problem = err.Error()
		}
	}
	w.addLoad(&snapshot)
	return snapshot, nil
}

// read takes the state from the cache.
func (w *watcher) read(ctx context.Context, snapshot *story.Snapshot) error {
	var pods corev1.PodList
	var sets appsv1.ReplicaSetList
	inDemo := client.InNamespace(Namespace)
	if err := errors.Join(w.reader.List(ctx, &pods, inDemo), w.reader.List(ctx, &sets, inDemo)); err != nil {
		return fmt.Errorf("read the pods: %w", err)
	}
	snapshot.Pods = describePods(pods.Items, sets.Items)
	key := client.ObjectKey{Namespace: Namespace, Name: Name}
	rollout, split := &serinv1alpha1.Rollout{}, &splitv1alpha4.TrafficSplit{}
	hasRollout, err1 := found(w.reader.Get(ctx, key, rollout))
	hasSplit, err2 := found(w.reader.Get(ctx, key, split))
	if hasRollout {
		snapshot.Rollout = rollout
	}
	if hasSplit {
		snapshot.Split = split
	}
	return errors.Join(err1, err2)
}

// found tells an object that is not there from one that could not be read.
func found(err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (w *watcher) addLoad(snapshot *story.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	snapshot.Load = w.load
	if w.loadErr != nil && snapshot.Time.Sub(w.loadSince) > patience && snapshot.Problem == "" {
		snapshot.Problem = w.loadErr.Error()
	}
}
