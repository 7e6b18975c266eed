// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/shares"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// Split is a TrafficSplit: the shares that it declares, those that are programmed, and those
// that were measured.
type Split struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Group     Group  `json:"group"`
	// State is the reason of the condition that says most, and Message its sentence.
	State   string `json:"state"`
	Message string `json:"message"`
	// Service is the root Service.
	Service string `json:"service"`
	Router  string `json:"router,omitempty"`
	// Rollout or Canary is what the split was made for; both are "" of a user's own split.
	Rollout string  `json:"rollout,omitempty"`
	Canary  string  `json:"canary,omitempty"`
	Shares  []Share `json:"shares"`
	// Mirror says what is mirrored, or "".
	Mirror string `json:"mirror,omitempty"`
	// Unchecked says why measured shares are not compared with the weights, or "".
	Unchecked string `json:"unchecked,omitempty"`
	// Measured is when the window ended that was measured last, and Window its length in
	// seconds.
	Measured *time.Time `json:"measured,omitempty"`
	Window   float64    `json:"window,omitempty"`
}

// Share is that of one backend. Shares are in percent.
type Share struct {
	Service string `json:"service"`
	// Weight is the declared one, and Declared the share that it asks for.
	Weight   int32   `json:"weight"`
	Declared float64 `json:"declared"`
	// Programmed is the live share, and Ready the number of endpoints that can answer. Both are
	// unset before the split is programmed for the first time.
	Programmed *float64    `json:"programmed,omitempty"`
	Ready      *int32      `json:"ready,omitempty"`
	Ports      []PortShare `json:"ports,omitempty"`
	// Measured is the share of the requests that were answered in the last window. It is unset
	// where that is not known, as are the figures.
	Measured *float64 `json:"measured,omitempty"`
	// Success is the share of requests that succeeded, RPS are requests a second, and P99 is a
	// latency in seconds.
	Success *float64 `json:"success,omitempty"`
	RPS     *float64 `json:"rps,omitempty"`
	P99     *float64 `json:"p99,omitempty"`
	// Check compares what was measured with the weight; nil where nothing is compared.
	Check *Check `json:"check,omitempty"`
}

// PortShare is the live weight of one port that has weights of its own.
type PortShare struct {
	Port   string `json:"port"`
	Weight int32  `json:"weight"`
}

// Check is whether a backend gets the share that its weight promises: the sample-ratio check
// of the analysis, over all windows since the page has seen the weight.
type Check struct {
	// Verdict is Waiting without a request, Fits, or Differs.
	Verdict  string    `json:"verdict"`
	Message  string    `json:"message"`
	Requests int64     `json:"requests"`
	Share    float64   `json:"share"`
	Since    time.Time `json:"since"`
}

// Verdicts of a Check.
const (
	Waiting = "Waiting"
	Fits    = "Fits"
	Differs = "Differs"
)

// Watched is what a page remembers of a TrafficSplit while it is looked at: what its backends
// answered while the weights were as they are. The zero value is the beginning.
type Watched struct {
	weights map[string]int32 // live, by backend, in whole percent
	since   time.Time
	counted time.Time // the end of the last window that was counted
	shares  map[string]shares.State
}

// Next counts what was measured, unless it was counted before. Windows that began before the
// weights were seen may have requests that other weights shared, and are left out.
func (w Watched) Next(split *splitv1.TrafficSplit, items []metricsv1.TrafficMetrics, now time.Time) Watched {
	weights := liveWeights(split)
	if weights == nil || !maps.Equal(weights, w.weights) {
		return Watched{weights: weights, since: now}
	}
	end, window := windowOf(items)
	if unchecked(split) != "" || !end.After(w.counted) || end.Add(-window).Before(w.since) {
		return w
	}
	counts, all := countsOf(items)
	next := Watched{weights: w.weights, since: w.since, counted: end, shares: map[string]shares.State{}}
	for service, weight := range w.weights {
		next.shares[service] = w.shares[service].Add(shares.Count{Canary: counts[service], Stable: all - counts[service]}, weight)
	}
	return next
}

// liveWeights are the live shares in whole percent, or nil when they are not known.
func liveWeights(split *splitv1.TrafficSplit) map[string]int32 {
	sum := 0.0
	for _, b := range split.Status.Backends {
		sum += float64(b.Weight)
	}
	if sum == 0 || !programmed(split) {
		return nil
	}
	weights := map[string]int32{}
	for _, b := range split.Status.Backends {
		weights[b.Service] = int32(math.Round(100 * float64(b.Weight) / sum))
	}
	return weights
}

// programmed is whether the present spec is live.
func programmed(split *splitv1.TrafficSplit) bool {
	c := meta.FindStatusCondition(split.Status.Conditions, splitv1.ConditionProgrammed)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == split.Generation
}

// unchecked says why the requests of a split need not be shared by its weights, or "".
func unchecked(split *splitv1.TrafficSplit) string {
	routing, err := splitv1.RoutingOf(split)
	switch {
	case err != nil:
		return Sentence(err.Error())
	case len(split.Spec.Matches) > 0:
		return "Only requests that match are split, and the others are counted too."
	case routing.StickyCookie != nil:
		return "Clients come back to their backend: the weights are shares of new clients, not of requests."
	case routing.Mirror != nil:
		return "Requests are mirrored, and may be counted twice."
	case slices.ContainsFunc(split.Status.Backends, func(b splitv1.BackendStatus) bool { return len(b.Ports) > 0 }):
		return "Ports have weights of their own."
	}
	return ""
}

// windowOf is the end and the length of the window that items are about.
func windowOf(items []metricsv1.TrafficMetrics) (end time.Time, length time.Duration) {
	for i := range items {
		if t := items[i].Timestamp.Time; t.After(end) {
			end, length = t, items[i].Window.Duration
		}
	}
	return end, length
}

// countsOf are the requests that backends answered, by their names, and all of them.
func countsOf(items []metricsv1.TrafficMetrics) (counts map[string]int64, all int64) {
	counts = map[string]int64{}
	for _, r := range receivedBy(items) {
		if r.Success != nil && r.Failure != nil {
			n := int64(*r.Success + *r.Failure)
			counts[r.Backend.Name] += n
			all += n
		}
	}
	return counts, all
}

// receivedBy are the figures of backends, each once.
func receivedBy(items []metricsv1.TrafficMetrics) []trafficstats.Row {
	return slices.DeleteFunc(trafficstats.Rows(items, metricsv1.DirectionFrom), func(r trafficstats.Row) bool { return r.Backend == nil })
}

// MakeSplit is the row of a TrafficSplit.
func MakeSplit(split *splitv1.TrafficSplit, items []metricsv1.TrafficMetrics, w Watched) Split {
	s := Split{
		Namespace: split.Namespace, Name: split.Name, Service: split.Spec.Service, Router: split.Status.Router,
		Rollout: split.Labels[v1alpha1.LabelRollout], Canary: split.Labels[v1alpha1.LabelCanaryRelease],
		Unchecked: unchecked(split), Shares: sharesOf(split, items, w),
	}
	if m := split.Status.Mirror; m != nil {
		s.Mirror = fmt.Sprintf("%d %% of the requests are mirrored to %s.", m.Percent, m.Service)
	}
	if end, window := windowOf(items); !end.IsZero() {
		s.Measured, s.Window = &end, window.Seconds()
	}
	s.Group, s.State, s.Message = stateOf(split)
	for _, share := range s.Shares {
		if share.Check != nil && share.Check.Verdict == Differs && s.Group == Stable {
			s.Group, s.State, s.Message = NeedsUser, "SharesDiffer", share.Check.Message
		}
	}
	return s
}

// stateOf is what the conditions say, the gravest first.
func stateOf(split *splitv1.TrafficSplit) (group Group, reason, message string) {
	for _, c := range []struct {
		kind  string
		group Group
	}{{splitv1.ConditionAccepted, Failed}, {splitv1.ConditionResolvedRefs, NeedsUser}, {splitv1.ConditionProgrammed, InProgress}} {
		found := meta.FindStatusCondition(split.Status.Conditions, c.kind)
		switch {
		case found == nil:
			return Unknown, "Unknown", "Serin has not processed it yet."
		case found.Status == metav1.ConditionFalse && (found.Reason == splitv1.ReasonProxyError || found.Reason == splitv1.ReasonRouteRefused):
			return Failed, found.Reason, found.Message
		case found.Status != metav1.ConditionTrue:
			return c.group, found.Reason, found.Message
		}
		reason, message = found.Reason, found.Message
	}
	if !programmed(split) {
		return InProgress, "Pending", "Serin has not processed the last change yet."
	}
	return Stable, reason, message
}

func sharesOf(split *splitv1.TrafficSplit, items []metricsv1.TrafficMetrics, w Watched) []Share {
	declared, live := 0.0, 0.0
	for _, b := range split.Spec.Backends {
		declared += float64(b.Weight)
	}
	status := map[string]splitv1.BackendStatus{}
	for _, b := range split.Status.Backends {
		live += float64(b.Weight)
		status[b.Service] = b
	}
	list := []Share{}
	for _, b := range split.Spec.Backends {
		share := Share{Service: b.Service, Weight: b.Weight, Declared: percentOf(float64(b.Weight), declared), Check: w.check(b.Service)}
		if found, known := status[b.Service]; known {
			share.Programmed, share.Ready = new(percentOf(float64(found.Weight), live)), new(found.ReadyEndpoints)
			for _, p := range found.Ports {
				share.Ports = append(share.Ports, PortShare{fmt.Sprintf("%d/%s", p.Port, p.Protocol), p.Weight})
			}
		}
		list = append(list, share)
	}
	measure(list, items)
	return list
}

// measure adds what was measured. A backend that answered nothing in the window has a share of
// 0 where others answered.
func measure(list []Share, items []metricsv1.TrafficMetrics) {
	counts, all := countsOf(items)
	rows := receivedBy(items)
	for i := range list {
		share := &list[i]
		if all > 0 {
			share.Measured = new(percentOf(float64(counts[share.Service]), float64(all)))
		}
		at := slices.IndexFunc(rows, func(r trafficstats.Row) bool { return r.Backend.Name == share.Service })
		if at < 0 {
			continue
		}
		if rate, known := rows[at].SuccessRate(); known {
			share.Success = new(100 * rate)
		}
		if rps, known := rows[at].RPS(); known {
			share.RPS = &rps
		}
		if p99 := rows[at].P99; p99 != nil {
			share.P99 = new(p99.Seconds())
		}
	}
}

func percentOf(part, all float64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * part / all
}

// check compares what a backend answered with its weight. Where the weight is all or nothing
// there is nothing to compare.
func (w Watched) check(service string) *Check {
	weight, known := w.weights[service]
	if !known || weight == 0 || weight == 100 {
		return nil
	}
	r := w.shares[service].Result()
	c := &Check{Verdict: Fits, Requests: r.Canary + r.Stable, Share: 100 * r.Share, Since: w.since}
	switch {
	case c.Requests == 0:
		c.Verdict, c.Message = Waiting, "No request has been counted since this page first saw this weight."
	case r.Mismatch():
		c.Verdict = Differs
		c.Message = fmt.Sprintf("%s answered %.1f %% of %d requests, and its weight is %d %%: look for clients that bypass the router, sticky sessions, and retries.", service, c.Share, c.Requests, weight)
	default:
		c.Message = fmt.Sprintf("%.1f %% of %d requests: no mismatch with the weight of %d %%.", c.Share, c.Requests, weight)
	}
	return c
}
