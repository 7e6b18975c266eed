// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// standIns stand in for the agents of all proxies: each ready proxy reports the newest
// configuration of its split, as the real agent does after it has reloaded nginx. Like
// the agent they act on what a watch says, and ask nothing while nothing changes.
type standIns struct {
	reader client.Reader
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu     sync.Mutex
	served map[string]*scene
}

func newStandIns(reader client.Reader) *standIns {
	return &standIns{
		reader: reader, served: map[string]*scene{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
}

// serveProxies has the proxies of the namespace report until the test ends.
func (s *scene) serveProxies() {
	s.Helper()
	proxies.mu.Lock()
	proxies.served[s.namespace] = s
	proxies.mu.Unlock()
	s.Cleanup(func() {
		proxies.mu.Lock()
		defer proxies.mu.Unlock()
		delete(proxies.served, s.namespace)
	})
	proxies.all(s.Context(), s.namespace)
}

func (p *standIns) serves(namespace string) *scene {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served[namespace]
}

// told looks at the splits that a change may concern.
func (p *standIns) told(o client.Object) {
	s := p.serves(o.GetNamespace())
	if s == nil {
		return
	}
	switch o := o.(type) {
	case *corev1.Pod:
		if split := o.Labels[traffic.LabelProxy]; split != "" {
			p.queue.Add(types.NamespacedName{Namespace: o.Namespace, Name: split})
		}
	case *splitv1.TrafficSplit:
		p.queue.Add(client.ObjectKeyFromObject(o))
	case *corev1.Service, *specsv1.HTTPRouteGroup:
		p.all(s.Context(), o.GetNamespace())
	}
}

func (p *standIns) all(ctx context.Context, namespace string) {
	splits := &splitv1.TrafficSplitList{}
	if err := p.reader.List(ctx, splits, client.InNamespace(namespace)); err != nil {
		return // the test has ended
	}
	for i := range splits.Items {
		p.queue.Add(client.ObjectKeyFromObject(&splits.Items[i]))
	}
}

func (p *standIns) run(ctx context.Context) {
	const workers = 4
	for range workers {
		go func() {
			for p.reportNext(ctx) {
			}
		}()
	}
}

func (p *standIns) reportNext(ctx context.Context) bool {
	key, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(key)
	s := p.serves(key.Namespace)
	if s == nil {
		return true
	}
	if err := p.report(ctx, key); err != nil && s.Context().Err() == nil {
		p.queue.AddRateLimited(key)
		return true
	}
	p.queue.Forget(key)
	return true
}

// report writes what is new of each ready proxy of a split.
func (p *standIns) report(ctx context.Context, key types.NamespacedName) error {
	ts, pods := &splitv1.TrafficSplit{}, &corev1.PodList{}
	if err := p.reader.Get(ctx, key, ts); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := p.reader.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingLabels{traffic.LabelProxy: key.Name}); err != nil {
		return err
	}
	digest := p.digest(ctx, ts)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if digest == "" || !isReady(pod) || pod.DeletionTimestamp != nil || reported(ts, pod.Name, digest) {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": ts.Name, "namespace": ts.Namespace},
			"status": map[string]any{"proxies": []any{map[string]any{
				"name": pod.Name, "observedGeneration": ts.Generation, "configuration": digest,
			}}},
		}}
		u.SetGroupVersionKind(splitv1.GroupVersion.WithKind("TrafficSplit"))
		err := admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(pod.Name), client.ForceOwnership)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// digest is that of what proxies serve of a split: "" when it is refused, and they
// serve on what they did.
func (p *standIns) digest(ctx context.Context, ts *splitv1.TrafficSplit) string {
	known := traffic.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}, Proxied: true}
	for _, name := range traffic.ServiceNames(ts) {
		if o := (&corev1.Service{}); p.reader.Get(ctx, types.NamespacedName{Namespace: ts.Namespace, Name: name}, o) == nil {
			known.Services[name] = o
		}
	}
	for _, name := range traffic.GroupNames(ts) {
		if o := (&specsv1.HTTPRouteGroup{}); p.reader.Get(ctx, types.NamespacedName{Namespace: ts.Namespace, Name: name}, o) == nil {
			known.Groups[name] = o
		}
	}
	resolved, problems := traffic.Resolve(ts, known)
	if traffic.Refused(problems) {
		return ""
	}
	return resolved.Digest()
}

// reported reports whether a split says that a pod serves a configuration.
func reported(ts *splitv1.TrafficSplit, pod, digest string) bool {
	for _, p := range ts.Status.Proxies {
		if p.Name == pod {
			return p.ObservedGeneration == ts.Generation && p.Configuration == digest
		}
	}
	return false
}
