// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/collect"
	"github.com/serin-dev/serin/traffic"
)

// Proxies measures TrafficSplits by the counters of Serin's own proxies.
type Proxies struct {
	pods      client.Reader
	port      int32
	collector *collect.Collector
	changed   chan event.TypedGenericEvent[types.NamespacedName]
}

// backlog is how many changes may wait for the controller. One that finds no room
// is dropped: the next window brings another.
const backlog = 1024

// New measures by the proxies' metrics at the given port. The pods are read from
// a cache.
func New(pods client.Reader, port int32, source collect.Source, clock collect.Clock, interval time.Duration) *Proxies {
	p := &Proxies{pods: pods, port: port, changed: make(chan event.TypedGenericEvent[types.NamespacedName], backlog)}
	p.collector = collect.New(source, clock, collect.Options{Interval: interval, Notify: p.notify})
	return p
}

// Changed carries the Rollouts with a new window or a change of health.
func (p *Proxies) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] { return p.changed }

// Start collects until ctx ends.
func (p *Proxies) Start(ctx context.Context) error { return p.collector.Run(ctx) }

// NeedLeaderElection is true: only the leader judges.
func (p *Proxies) NeedLeaderElection() bool { return true }

// Measure begins to measure a split for a Rollout, or updates its proxies and its weight.
func (p *Proxies) Measure(ctx context.Context, rollout types.NamespacedName, of analysis.Subject, w analysis.Weight) error {
	list := &corev1.PodList{}
	err := p.pods.List(ctx, list, client.InNamespace(rollout.Namespace),
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
		t.Pods = append(t.Pods, analysis.Pod{
			UID: string(pod.UID), Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(p.port))),
		})
	}
	slices.SortFunc(t.Pods, func(a, b analysis.Pod) int { return strings.Compare(a.UID, b.UID) })
	p.collector.Watch(rollout.String(), t, w)
	return nil
}

// Forget ends the measurement for a Rollout.
func (p *Proxies) Forget(rollout types.NamespacedName) { p.collector.Forget(rollout.String()) }

// Windows returns the windows that ended after a time, oldest first, and how well
// the split is measured.
func (p *Proxies) Windows(rollout types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	return p.collector.Windows(rollout.String(), after)
}

func (p *Proxies) notify(key string) {
	namespace, name, _ := strings.Cut(key, string(types.Separator))
	select {
	case p.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Namespace: namespace, Name: name}}:
	default:
	}
}
