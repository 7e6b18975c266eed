// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// Measurements count what both versions of a TrafficSplit answer, in the background.
type Measurements interface {
	// Measure begins to measure a split, or tells what changed. Since of the weight is zero
	// while the weight is changing.
	Measure(ctx context.Context, split types.NamespacedName, of analysis.Subject, w analysis.Weight) error
	// Forget ends the measurement.
	Forget(split types.NamespacedName)
	// Windows returns what was measured after a time, and why data is missing.
	Windows(split types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health)
}

// lately is how far back the figures of the status go.
const lately = time.Minute

// measured is a Service that is being measured: the live weights, and since when they were
// seen to be.
type measured struct {
	weights []helmrelease.PortWeight
	since   time.Time
}

// observeTraffic has the Services measured whose traffic is shared, and reads what was
// counted. Nothing is decided by that, so what is missing keeps nothing from going on.
func (r *Reconciler) observeTraffic(ctx context.Context, s *observation) {
	shared := map[string]bool{}
	for i := range s.Services {
		service := &s.Services[i]
		root := s.root(service.Name)
		if sp := service.Split; root == nil || sp.Presence != kit.Present || !sp.Ours || sp.Deleting || !s.speaksHTTP(root) {
			continue
		}
		shared[service.Name] = true
		weight := s.helm.measure(service, s.Now)
		key := s.key(service.Name)
		of := analysis.Subject{
			Split: service.Name, Stable: workload.BackendName(root.Name, v1alpha1.RoleStable), Canary: workload.BackendName(root.Name, v1alpha1.RoleCanary),
		}
		if err := r.options.Measurements.Measure(ctx, key, of, weight); err != nil {
			s.retry = errors.Join(s.retry, err)
			continue
		}
		windows, health := r.options.Measurements.Windows(key, s.Now.Add(-lately))
		service.Traffic = figures(windows, health, latest(weight.Since, s.Now.Add(-lately)))
	}
	for name := range s.helm.measured {
		if !shared[name] {
			r.options.Measurements.Forget(s.key(name))
			delete(s.helm.measured, name)
		}
	}
}

func (s *observation) key(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.CanaryRelease.Namespace, Name: service}
}

// measure notes which weights are live. Those of an operator that was restarted count
// from now on, since nothing was measured before.
func (k *knowledge) measure(s *helmrelease.Service, now time.Time) analysis.Weight {
	if k.measured == nil {
		k.measured = map[string]measured{}
	}
	m := k.measured[s.Name]
	switch {
	case !s.Split.Programmed || s.Split.Requested == nil:
		m = measured{}
	case m.since.IsZero() || !slices.Equal(m.weights, s.Split.Requested):
		m = measured{weights: s.Split.Requested, since: now}
	}
	k.measured[s.Name] = m
	weight := analysis.Weight{Since: m.since}
	for _, w := range m.weights { // which of them a window names does not matter here
		weight.Percent = max(weight.Percent, w.Weight)
	}
	return weight
}

func latest(a, b time.Time) time.Time {
	if a.IsZero() || a.After(b) {
		return a
	}
	return b
}

// figures are the sum of the windows that began at since or later; nil when what is known
// is not whole.
func figures(windows []analysis.Window, health analysis.Health, since time.Time) *v1alpha1.CanaryTraffic {
	if since.IsZero() || health.Reason != "" || health.Missed > 0 {
		return nil
	}
	var covered time.Duration
	out := &v1alpha1.CanaryTraffic{}
	for _, w := range windows {
		if w.Start.Before(since) {
			continue
		}
		covered += w.End.Sub(w.Start)
		out.EndedAt = metav1.NewMicroTime(w.End)
		for arm, counts := range map[*analysis.Variant]*v1alpha1.CanaryCounts{&w.Stable: &out.Stable, &w.Canary: &out.Canary} {
			counts.Requests += arm.Requests
			counts.Failures += arm.Failures
		}
	}
	out.Seconds = int32(covered.Round(time.Second) / time.Second) //nolint:gosec // at most a minute
	if out.Seconds == 0 {
		return nil
	}
	return out
}

// speaksHTTP reports whether any port of a Service does: only requests of HTTP are counted.
func (s *observation) speaksHTTP(root *corev1.Service) bool {
	return slices.ContainsFunc(root.Spec.Ports, func(p corev1.ServicePort) bool {
		protocol := resolve.ProtocolOf(p)
		http := protocol == traffic.ProtocolHTTP || protocol == traffic.ProtocolHTTP2
		live := helmrelease.Port{Number: p.Port, Transport: string(cmp.Or(p.Protocol, corev1.ProtocolTCP))}
		for _, named := range s.portsOf(root.Name) {
			if named.Protocol != "" && helmrelease.Means(named, live) {
				http = named.Protocol == v1alpha1.CanaryProtocolHTTP
			}
		}
		return http
	})
}

// portsOf are the ports of a Service in the spec.
func (s *observation) portsOf(service string) []v1alpha1.CanaryPort {
	for _, c := range s.CanaryRelease.Spec.Services {
		if c.Service == service {
			return c.Ports
		}
	}
	return nil
}

// forgetTraffic ends all measurements for a CanaryRelease.
func (r *Reconciler) forgetTraffic(namespace string, k *knowledge) {
	for name := range k.measured {
		r.options.Measurements.Forget(types.NamespacedName{Namespace: namespace, Name: name})
	}
	k.measured = nil
}
