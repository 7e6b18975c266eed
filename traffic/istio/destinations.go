// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// target is a Service with its weight, in the place of the root Service.
type target struct {
	service string
	weight  int64
}

// chooser says what takes the place of the root Service on one of its ports. None
// leaves the root Service.
type chooser func(traffic.Port) ([]target, error)

// byWeight shares the requests of a port among the backends. A backend of weight 0
// is named too: Istio sends it nothing.
func byWeight(p traffic.Port) ([]target, error) {
	if p.TotalWeight() == 0 {
		return nil, fmt.Errorf("no backend with a weight above 0 has port %d", p.Number)
	}
	var targets []target
	for _, d := range p.Destinations {
		targets = append(targets, target{d.Service, int64(d.Weight)})
	}
	return targets, nil
}

// byDefault sends the requests of a port where those go that match none.
func byDefault(p traffic.Port) ([]target, error) {
	if p.Default == nil {
		return nil, nil
	}
	return []target{{p.Default.Service, 1}}, nil
}

// destination is one entry of a route: {destination: {host, port, subset}, weight, headers}.
type destination struct {
	entry  map[string]any
	host   string
	port   int64 // 0 when it names none
	weight int64
}

func parseDestinations(list []any) ([]destination, error) {
	out := make([]destination, 0, len(list))
	for _, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			return nil, errors.New("a destination of the route is not an object")
		}
		to, _ := entry["destination"].(map[string]any)
		port, _ := to["port"].(map[string]any)
		d := destination{entry: entry, port: whole(port["number"]), weight: whole(entry["weight"])}
		d.host, _ = to["host"].(string)
		if len(list) == 1 {
			d.weight = 1 // a single one gets everything, whatever its weight
		}
		out = append(out, d)
	}
	return out, nil
}

// whole is a number of JSON as an API server writes it, 0 for none.
func whole(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	default:
		return 0
	}
}

// portsOf are the root Service's ports that a destination may stand for: the one
// that it names, or all of them. Istio routes no UDP.
func (d destination) portsOf(split traffic.Split) []traffic.Port {
	var ports []traffic.Port
	for _, p := range split.Ports {
		if p.Protocol != traffic.ProtocolUDP && (d.port == 0 || int64(p.Number) == d.port) {
			ports = append(ports, p)
		}
	}
	return ports
}

// choose asks what takes the place of the root Service. When a destination names no
// port, it has to be the same for all of them.
func (d destination) choose(split traffic.Split, by chooser) ([]target, error) {
	var chosen []target
	for i, p := range d.portsOf(split) {
		targets, err := by(p)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(chosen, targets) {
			return nil, fmt.Errorf("a destination of Service %q names no port, and its ports have different backends; write port.number", split.Root)
		}
		chosen = targets
	}
	return chosen, nil
}

// replace puts the chosen Services in the place of the root Service, and leaves the
// share of every other destination as it is.
func replace(list []any, split traffic.Split, by chooser) ([]any, error) {
	destinations, err := parseDestinations(list)
	if err != nil {
		return nil, err
	}
	shares := make([]routes.Share, len(destinations))
	chosen := make([][]target, len(destinations))
	found := false
	for i, d := range destinations {
		shares[i].Weight = d.weight
		if !isService(d.host, split.Namespace, split.Root) {
			continue
		}
		if chosen[i], err = d.choose(split, by); err != nil {
			return nil, err
		}
		for _, t := range chosen[i] {
			shares[i].Parts = append(shares[i].Parts, t.weight)
			found = true
		}
	}
	if !found {
		return list, nil
	}
	weights, err := checkWeights(routes.Weights(shares))
	if err != nil {
		return nil, err
	}
	return write(destinations, chosen, weights), nil
}

// Bounds of Istio and of its proxies: a weight is an int32, and the sum of those of
// a route fits in 32 bits.
var (
	maxWeight = big.NewInt(math.MaxInt32)
	maxSum    = big.NewInt(math.MaxUint32)
)

func checkWeights(weights [][]*big.Int) ([][]int64, error) {
	total := new(big.Int)
	out := make([][]int64, len(weights))
	for i, list := range weights {
		for _, w := range list {
			total.Add(total, w)
			if w.Cmp(maxWeight) > 0 || total.Cmp(maxSum) > 0 {
				return nil, fmt.Errorf("the weights of the route and of the split together need a weight of %s, more than Istio takes; "+
					"choose weights with a common factor", w)
			}
			out[i] = append(out[i], w.Int64())
		}
	}
	return out, nil
}

// write builds the entries of a route: each like the one that it replaces, with
// another host and weight. A single one is left without a weight that it did not have.
func write(destinations []destination, chosen [][]target, weights [][]int64) []any {
	var out []any
	for i, d := range destinations {
		for j, w := range weights[i] {
			entry := runtime.DeepCopyJSON(d.entry)
			if len(chosen[i]) > 0 {
				own := hostOf(d.host)
				if at, _ := entry["destination"].(map[string]any); at != nil {
					at["host"] = own.named(chosen[i][j].service)
				}
			}
			entry["weight"] = w
			out = append(out, entry)
		}
	}
	if len(out) == 1 {
		restoreWeight(out[0].(map[string]any), destinations[0].entry)
	}
	return out
}

func restoreWeight(entry, before map[string]any) {
	if w, found := before["weight"]; found {
		entry["weight"] = w
		return
	}
	delete(entry, "weight")
}

// host is the name of a Service as a VirtualService writes it: the Service's name,
// and what follows it, such as "", ".shop" or ".shop.svc.cluster.local".
type host struct {
	service, domain string
}

// parseHost reads a host. It is a Service of the namespace if it is a name alone,
// which Istio reads in the namespace of the VirtualService, or if the namespace and
// svc follow.
func parseHost(text, namespace string) (host, bool) {
	service, domain, qualified := strings.Cut(text, ".")
	if !qualified {
		return host{service: service}, service != "" && service != "*"
	}
	space, rest, more := strings.Cut(domain, ".")
	if space != namespace || more && rest != "svc" && !strings.HasPrefix(rest, "svc.") {
		return host{}, false
	}
	return host{service, "." + domain}, service != ""
}

// hostOf is a host that is known to be a Service of the namespace.
func hostOf(text string) host {
	service, _, _ := strings.Cut(text, ".")
	return host{service, strings.TrimPrefix(text, service)}
}

// isService reports whether a host stands for a Service of the namespace.
func isService(text, namespace, service string) bool {
	h, ok := parseHost(text, namespace)
	return ok && h.service == service
}

// named is the host of another Service of the namespace, written the same way.
func (h host) named(service string) string { return service + h.domain }
