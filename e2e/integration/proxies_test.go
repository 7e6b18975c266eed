// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// standIns stand in for the agents of all proxies, and for what reads them: each ready proxy
// serves the newest configuration of its split, as the real agent does after it has
// reloaded nginx, and operators are notified of each change.
type standIns struct {
	reader client.Reader

	mu     sync.Mutex
	served map[string]*scene
	// operators learn of changes in their namespaces; of all when they name none.
	operators map[chan event.TypedGenericEvent[types.NamespacedName]][]string
}

func newStandIns(reader client.Reader) *standIns {
	return &standIns{
		reader: reader, served: map[string]*scene{}, operators: map[chan event.TypedGenericEvent[types.NamespacedName]][]string{},
	}
}

// changed is what an operator of some namespaces learns of changes by, until the test ends.
func (p *standIns) changed(t *testing.T, namespaces []string) <-chan event.TypedGenericEvent[types.NamespacedName] {
	channel := make(chan event.TypedGenericEvent[types.NamespacedName], 4096)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.operators[channel] = namespaces
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.operators, channel)
	})
	return channel
}

func (p *standIns) notify(split types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for channel, namespaces := range p.operators {
		if len(namespaces) > 0 && !slices.Contains(namespaces, split.Namespace) {
			continue
		}
		select {
		case channel <- event.TypedGenericEvent[types.NamespacedName]{Object: split}:
		default: // it looks again by itself
		}
	}
}

// serveProxies has the proxies of the namespace serve until the test ends.
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
	proxies.all(s.Context(), s.namespace, func(*splitv1.TrafficSplit) bool { return true })
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
			p.notify(types.NamespacedName{Namespace: o.Namespace, Name: split})
		}
	case *splitv1.TrafficSplit:
		p.notify(client.ObjectKeyFromObject(o))
	case *corev1.Service:
		p.all(s.Context(), o.GetNamespace(), func(ts *splitv1.TrafficSplit) bool { return slices.Contains(resolve.ServiceNames(ts), o.Name) })
	case *specsv1.HTTPRouteGroup:
		p.all(s.Context(), o.GetNamespace(), func(ts *splitv1.TrafficSplit) bool { return slices.Contains(resolve.GroupNames(ts), o.Name) })
	}
}

func (p *standIns) all(ctx context.Context, namespace string, concerned func(*splitv1.TrafficSplit) bool) {
	splits := &splitv1.TrafficSplitList{}
	if err := p.reader.List(ctx, splits, client.InNamespace(namespace)); err != nil {
		return // the test has ended
	}
	for i := range splits.Items {
		if concerned(&splits.Items[i]) {
			p.notify(client.ObjectKeyFromObject(&splits.Items[i]))
		}
	}
}

// Read implements traffic.ProxyReports.
func (p *standIns) Read(key types.NamespacedName, _ traffic.Want, pods map[types.UID]string) map[types.UID]traffic.Reading {
	s, out := p.serves(key.Namespace), map[types.UID]traffic.Reading{}
	ts, list := &splitv1.TrafficSplit{}, &corev1.PodList{}
	if s == nil || p.reader.Get(s.Context(), key, ts) != nil {
		return out
	}
	if err := p.reader.List(s.Context(), list, client.InNamespace(key.Namespace), client.MatchingLabels{traffic.LabelProxy: key.Name}); err != nil {
		return out
	}
	digest := p.digest(s.Context(), ts)
	for i := range list.Items {
		pod := &list.Items[i]
		if _, asked := pods[pod.UID]; asked && digest != "" && podutils.IsPodReady(pod) && pod.DeletionTimestamp == nil {
			out[pod.UID] = traffic.Reading{Done: true, Serves: traffic.Want{Generation: ts.Generation, Configuration: digest}}
		}
	}
	return out
}

// digest is that of what proxies serve of a split: "" when it is refused, and they
// serve on what they did.
func (p *standIns) digest(ctx context.Context, ts *splitv1.TrafficSplit) string {
	known := resolve.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}, Proxied: true}
	for _, name := range resolve.ServiceNames(ts) {
		if o := (&corev1.Service{}); p.reader.Get(ctx, types.NamespacedName{Namespace: ts.Namespace, Name: name}, o) == nil {
			known.Services[name] = o
		}
	}
	for _, name := range resolve.GroupNames(ts) {
		if o := (&specsv1.HTTPRouteGroup{}); p.reader.Get(ctx, types.NamespacedName{Namespace: ts.Namespace, Name: name}, o) == nil {
			known.Groups[name] = o
		}
	}
	resolve.Settle(ts, known.Services, time.Now())
	resolved, problems := resolve.Split(ts, known)
	if traffic.Refused(problems) || len(resolved.Ports) == 0 {
		return ""
	}
	return resolved.Digest()
}
