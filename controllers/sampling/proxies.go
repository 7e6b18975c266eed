// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/poll"
	"github.com/serin-dev/serin/poll/fair"
	"github.com/serin-dev/serin/traffic"
)

// Source reads the counters of a target.
type Source interface {
	// Scrape reads every pod of the target once. The argument at becomes the
	// time of the Scrape. It returns an error only when no pod could be read;
	// it must return soon after ctx ends.
	Scrape(ctx context.Context, t analysis.Target, at time.Time) (analysis.Scrape, error)
}

// keep is how many windows of a target are kept, read or not.
const keep = 120

// ProxiesOptions configure Proxies. What is zero gets the default.
type ProxiesOptions struct {
	// Pods are read from a cache, with who made them. They serve their metrics at Port.
	Pods   client.Reader
	Port   int32
	Source Source
	Clock  clock.WithTicker
	// Interval is the time between two readings of a target, and so the length of a window.
	// Default: analysis.WindowLength.
	Interval time.Duration
	// Slots bound how many targets are read at once. Default: 32.
	Slots *fair.Slots
	// Changes learns of each new window and each change of health. Optional.
	Changes changes.Channel
}

// Proxies measures TrafficSplits by the counters of Serin's own proxies.
type Proxies struct {
	ProxiesOptions
	begun  time.Time
	poller *poll.Poller[types.NamespacedName]

	mu      sync.Mutex
	targets map[types.NamespacedName]*target
}

// NewProxies makes Proxies. They measure once they are started.
func NewProxies(o ProxiesOptions) *Proxies {
	o.Interval = cmp.Or(o.Interval, analysis.WindowLength)
	if o.Slots == nil {
		o.Slots = fair.NewSlots(fair.Limits{Slots: 32})
	}
	return &Proxies{
		ProxiesOptions: o, begun: o.Clock.Now(), poller: poll.New[types.NamespacedName](o.Clock, o.Slots),
		targets: map[types.NamespacedName]*target{},
	}
}

// Start measures until ctx ends.
func (p *Proxies) Start(ctx context.Context) error { return p.poller.Run(ctx) }

// NeedLeaderElection is true: only the leader judges.
func (p *Proxies) NeedLeaderElection() bool { return true }

// Measure begins to measure a split for a Rollout, or updates its proxies and its weight.
func (p *Proxies) Measure(ctx context.Context, rollout types.NamespacedName, of analysis.Subject, w analysis.Weight) error {
	list := &corev1.PodList{}
	err := p.Pods.List(ctx, list, client.InNamespace(rollout.Namespace),
		client.MatchingLabels{traffic.LabelProxy: of.Split}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("proxies of the TrafficSplit %q could not be listed: %w", of.Split, err)
	}
	t := analysis.Target{Stable: of.Stable, Canary: of.Canary}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		made, err := p.made(ctx, pod, of.Split)
		if err != nil {
			return fmt.Errorf("who made proxy %q of the TrafficSplit %q could not be read: %w", pod.Name, of.Split, err)
		}
		if !made {
			continue
		}
		t.Pods = append(t.Pods, analysis.Pod{
			UID: string(pod.UID), Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(p.Port))),
		})
	}
	slices.SortFunc(t.Pods, func(a, b analysis.Pod) int { return strings.Compare(a.UID, b.UID) })
	p.watch(rollout, t, w)
	return nil
}

// made reports whether a pod is of the Deployment that the router made for a split. Users who
// may create pods may give them any label, and owners: a ReplicaSet deletes what is too much.
func (p *Proxies) made(ctx context.Context, pod *corev1.Pod, split string) (bool, error) {
	rs := &appsv1.ReplicaSet{}
	if is, err := p.controls(ctx, pod, "ReplicaSet", rs); !is {
		return false, err
	}
	d := &appsv1.Deployment{}
	is, err := p.controls(ctx, rs, "Deployment", d)
	return is && d.Name == traffic.ProxyName(split) && d.Labels[traffic.LabelProxy] == split, err
}

// controls reads the controller of an object, and reports whether it is of a kind and there.
func (p *Proxies) controls(ctx context.Context, o metav1.Object, kind string, controller client.Object) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != kind || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return false, nil
	}
	err := p.Pods.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, controller)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return controller.GetUID() == owner.UID, nil
}

// watch has a target measured, or updates what is measured. With a confirmed weight it is
// read at once and then in each round, so that a window begins right after the
// confirmation. The same arguments change nothing. Windows close only while the weight is
// confirmed: it has to be without Since before a new one is written. Other backends forget
// what was measured; other pods do not.
func (p *Proxies) watch(key types.NamespacedName, spec analysis.Target, weight analysis.Weight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[key]
	if t == nil || !t.sameBackends(spec) {
		t = &target{}
		p.targets[key] = t
		p.poller.Set(key, poll.Task{
			Namespace: key.Namespace, From: p.begun, Every: p.Interval, Do: func(ctx context.Context) { p.scrape(ctx, key, t) },
		})
	}
	if t.spec.Equal(spec) && t.weight == weight {
		return
	}
	t.spec, t.weight = spec.Clone(), weight
	if !weight.Since.IsZero() {
		p.poller.Now(key)
	}
}

// Forget ends the measurement for a Rollout.
func (p *Proxies) Forget(rollout types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.targets, rollout)
	p.poller.Remove(rollout)
}

// Windows returns the windows that ended after a time, oldest first, and how well the
// split is measured.
func (p *Proxies) Windows(rollout types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.targets[rollout]; t != nil {
		return t.after(after)
	}
	return nil, analysis.Health{}
}

// scrape reads one target, and stores what it gave.
func (p *Proxies) scrape(ctx context.Context, key types.NamespacedName, t *target) {
	p.mu.Lock()
	spec := t.spec
	p.mu.Unlock()
	// Whole microseconds survive being stored in the API, so that the end of a
	// window can be compared with what was stored of it.
	s, err := p.read(ctx, spec, p.Clock.Now().Truncate(time.Microsecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return // stopping is not a fault of the target, and what was forgotten is not kept
	}
	if t.add(s, err) {
		p.Changes.Notify(key)
	}
}

// read asks the source, which must not take longer than one interval: a round
// later its answer would be of no use. A source that panics is a source that
// could not be read.
func (p *Proxies) read(ctx context.Context, spec analysis.Target, at time.Time) (s analysis.Scrape, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Interval)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			s, err = analysis.Scrape{}, fmt.Errorf("the source panicked: %v", r)
		}
	}()
	if len(spec.Pods) == 0 {
		return analysis.Scrape{}, errNoPods
	}
	return p.Source.Scrape(ctx, spec, at)
}

var errNoPods = errors.New("there are no proxies to read")
