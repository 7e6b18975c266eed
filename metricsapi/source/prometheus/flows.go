// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// between distinguishes flows.
type between struct {
	side           metricsv1.Side
	client, server observe.Party
	apex, backend  string
}

// flowCount is what was counted of one flow.
type flowCount struct {
	success, failure float64
	// buckets by their bound in seconds, cumulative.
	buckets map[float64]float64
}

// flowCounts puts the answers to all queries of an observation together.
type flowCounts struct {
	reader reader
	flows  map[between]*flowCount
}

func newFlowCounts(services Services) *flowCounts {
	return &flowCounts{reader: reader{services: services, joined: map[string]types.NamespacedName{}}, flows: map[between]*flowCount{}}
}

// add adds the answer to one query. What is no count is not known, and left out.
func (t *flowCounts) add(q query, answer model.Vector) {
	for _, s := range answer {
		v := float64(s.Value)
		if s.Histogram != nil || !(v >= 0) || math.IsInf(v, 1) {
			continue
		}
		if q.counter == nil {
			t.addBucket(q.view, s.Metric, v)
			continue
		}
		flow := t.flow(q.view, s.Metric)
		switch q.counter.outcome(s.Metric) {
		case Success:
			flow.success += v
		case Failure:
			flow.failure += v
		}
	}
}

func (t *flowCounts) addBucket(v *View, m model.Metric, n float64) {
	le, err := strconv.ParseFloat(string(m[model.BucketLabel]), 64)
	if err != nil || math.IsNaN(le) {
		return
	}
	if v.Latency.Unit == Milliseconds {
		le /= 1000
	}
	t.flow(v, m).buckets[le] += n
}

// outcome of the requests of one series; "" if they say nothing about who answered.
func (c *Counter) outcome(m model.Metric) Outcome {
	switch {
	case c.Outcome != "":
		return c.Outcome
	case c.FailureLabel != "":
		if m[model.LabelName(c.FailureLabel)] == model.LabelValue(Failure) {
			return Failure
		}
		return Success
	}
	if c.failedCall(m) {
		return Failure
	}
	status, err := strconv.Atoi(string(m[model.LabelName(c.StatusLabel)]))
	if err != nil {
		return ""
	}
	switch analysis.Classify(status) {
	case analysis.Success:
		return Success
	case analysis.Failure:
		return Failure
	default:
		return ""
	}
}

// failedCall is whether a series counts calls of gRPC that failed, as at Serin's proxies.
func (c *Counter) failedCall(m model.Metric) bool {
	status, err := strconv.Atoi(string(m[model.LabelName(c.GRPCStatusLabel)]))
	return err == nil && slices.ContainsFunc(analysis.FailedCalls(), func(f analysis.FailedCall) bool { return f.GRPC == status })
}

// flow finds the flow of a series. What was called and what was chosen are the same where
// the traffic was not split.
func (t *flowCounts) flow(v *View, m model.Metric) *flowCount {
	key := between{
		side: v.Side, client: t.reader.party(m, &v.Client), server: t.reader.party(m, &v.Server),
		apex: t.reader.name(m, v.Apex), backend: t.reader.name(m, v.Backend),
	}
	switch {
	case v.Apex.Label != "" && key.apex == "" && key.backend != "":
		// The label is there for those that were split: this Service is its own apex.
		key.server.Service, key.apex = key.backend, key.backend
	case key.apex == key.backend, key.apex == "", key.backend == "":
		key.server.Service = cmp.Or(key.backend, key.apex, key.server.Service)
		key.apex, key.backend = "", ""
	}
	if key.server.Namespace == "" {
		// A Service of no namespace is a host outside of the cluster.
		key.apex, key.backend, key.server.Service = "", "", ""
	}
	if t.flows[key] == nil {
		t.flows[key] = &flowCount{buckets: map[float64]float64{}}
	}
	return t.flows[key]
}

// list are the flows with requests that concern a namespace.
func (t *flowCounts) list(namespace string) []observe.Flow {
	flows := make([]observe.Flow, 0, len(t.flows))
	for key, n := range t.flows {
		// An end of which only the address is known may be anywhere.
		elsewhere := func(p observe.Party) bool { return p.Namespace != namespace && !p.Address.IsValid() }
		if n.success+n.failure == 0 || namespace != "" && elsewhere(key.client) && elsewhere(key.server) {
			continue
		}
		flows = append(flows, observe.Flow{
			Side: key.side, Client: key.client, Server: key.server, Apex: key.apex, Backend: key.backend,
			Success: n.success, Failure: n.failure, Latency: n.histogram(),
		})
	}
	return flows
}

// histogram is the latency; nil without the bucket of all requests. Increases of buckets
// that were estimated one by one may miss their order by a little.
func (n *flowCount) histogram() *observe.Histogram {
	total, found := n.buckets[math.Inf(1)]
	if !found {
		return nil
	}
	h := &observe.Histogram{Total: total}
	var below float64
	for _, le := range slices.Sorted(maps.Keys(n.buckets)) {
		if math.IsInf(le, 1) {
			break
		}
		below = min(max(below, n.buckets[le]), total)
		h.LE, h.Counts = append(h.LE, le), append(h.Counts, below)
	}
	return h
}
