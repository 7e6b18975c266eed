// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// round is one reading of all proxies.
type round struct {
	at time.Time
	// readings by the proxy and its start.
	readings map[string]reading
	// missed is how many proxies could not be read, and why the first could not.
	missed int
	why    string
}

// window is what was counted between two rounds.
type window struct {
	pairs map[pair]analysis.Variant
	// begun and broken are how many proxies were not in the round before, and how many
	// counted backwards.
	begun, broken int
}

// between compares two rounds.
func between(before, now round) window {
	w := window{pairs: map[pair]analysis.Variant{}}
	for proxy, r := range now.readings {
		old, known := before.readings[proxy]
		switch {
		case !known:
			w.begun++
		case !w.add(old, r):
			w.broken++
		}
	}
	return w
}

// add adds the increases of one proxy; none of them if one can't be.
func (w *window) add(before, now reading) bool {
	increases := make(map[pair]analysis.Variant, len(now.pairs))
	for key, counted := range now.pairs {
		// A pair that was not there before was counted from zero: its proxy runs since.
		d, ok := counted.Increase(before.pairs[key])
		if !ok {
			return false
		}
		if d.Requests > 0 {
			increases[key] = d
		}
	}
	for key, d := range increases {
		sum := w.pairs[key].Plus(d)
		sum.Requests, sum.Failures = min(sum.Requests, analysis.MaxCount), min(sum.Failures, analysis.MaxCount)
		w.pairs[key] = sum
	}
	return true
}

// locate finds the pod that has an address.
type locate func(netip.Addr) (types.NamespacedName, bool)

// flows are the pairs with requests. Addresses are looked up now, before others get them.
func (w *window) flows(whose locate) []observe.Flow {
	flows := make([]observe.Flow, 0, len(w.pairs))
	for key, c := range w.pairs {
		f := observe.Flow{
			Side: metricsv1.SideClient, Client: party(key.client, "", whose), Server: within(key.namespace.Value(), party(key.server, key.namespace.Value(), whose)),
			Success: float64(c.Requests - c.Failures), Failure: float64(c.Failures), Latency: histogram(c.Latency),
		}
		// A proxy names no apex for what matched nothing. That was not split: its Service is
		// its own apex, so that no split takes it for its backend's.
		f.Server.Service = key.backend.Value()
		f.Backend = f.Server.Service
		f.Apex = cmp.Or(key.apex.Value(), f.Backend)
		flows = append(flows, f)
	}
	return flows
}

func party(a netip.Addr, namespace string, whose locate) observe.Party {
	p := observe.Party{Namespace: namespace, Address: a}
	if !a.IsValid() || whose == nil {
		return p
	}
	if pod, found := whose(a); found {
		p.Namespace, p.Pod = pod.Namespace, pod.Name
	}
	return p
}

// within is a server of the proxy's own namespace, where its backends are. Another one is not
// named: anyone who may make a pod there could count requests for the pods of others, as if they
// had answered them.
func within(namespace string, server observe.Party) observe.Party {
	if server.Namespace != namespace {
		return observe.Party{Namespace: namespace}
	}
	return server
}

func histogram(counted *analysis.Histogram) *observe.Histogram {
	if counted == nil {
		return nil
	}
	le := counted.LE
	h := &observe.Histogram{LE: le, Counts: make([]float64, len(le)), Total: float64(counted.Counts[len(le)])}
	for i := range le {
		h.Counts[i] = float64(counted.Counts[i])
	}
	return h
}

// partial says which proxies are not in a window; "" when all are.
func (w *window) partial(now round) string {
	all := len(now.readings) + now.missed
	var missing []string
	for _, m := range []struct {
		proxies int
		why     string
	}{{now.missed, "could not be read"}, {w.begun, "began in the window"}, {w.broken, "were reset in it"}} {
		if m.proxies > 0 {
			missing = append(missing, fmt.Sprintf("%d of %d proxies %s", m.proxies, all, m.why))
		}
	}
	if missing == nil {
		return ""
	}
	return strings.Join(missing, ", ") + "; their requests are missing"
}
