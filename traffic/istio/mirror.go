// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
)

// addMirror has a share of a route's requests mirrored, in addition to the mirrors that its
// owner asks for. Istio copies a share of all requests of a route: that is the share
// of those to other backends only if the mirror's backend gets none of them, and only
// if every destination is the root Service.
func addMirror(out, route map[string]any, split traffic.Split) error {
	if split.Mirror == nil {
		return nil
	}
	list, _ := route["route"].([]any)
	destinations, err := parseDestinations(list)
	if err != nil {
		return err
	}
	port, copied, err := mirrorPort(destinations, split)
	if err != nil || !copied {
		return err
	}
	if route["mirror"] != nil {
		return errors.New("it has a mirror of its own, and Istio takes no second one; write it as an entry of mirrors")
	}
	to := map[string]any{"host": hostOf(destinations[0].host).named(split.Mirror.Service)}
	if port != 0 {
		to["port"] = map[string]any{"number": port}
	}
	mirrors, _ := out["mirrors"].([]any)
	out["mirrors"] = append(runtime.DeepCopyJSONValue(append([]any{}, mirrors...)).([]any), map[string]any{
		"destination": to, "percentage": map[string]any{"value": int64(split.Mirror.Percent)},
	})
	return nil
}

// mirrorPort is the port that the copies of a route's requests go to, 0 when the
// route names none. Nothing is copied when the mirror's backend lacks the port.
func mirrorPort(destinations []destination, split traffic.Split) (port int64, copied bool, err error) {
	for i, d := range destinations {
		if !isService(d.host, split.Namespace, split.Root) {
			return 0, false, fmt.Errorf("it has another destination than Service %q, whose requests Istio would copy too; "+
				"remove the mirror, or move the destination to a route of its own", split.Root)
		}
		if i > 0 && d.port != port {
			return 0, false, errors.New("its destinations have several ports, and Istio copies all requests to one; remove the mirror")
		}
		port = d.port
		for _, p := range d.portsOf(split) {
			copied = copied || p.Mirror != nil
		}
	}
	for _, p := range split.Ports {
		for _, d := range p.Destinations {
			if d.Service == split.Mirror.Service && d.Weight > 0 {
				return 0, false, fmt.Errorf("the mirror's Service %q gets requests by weight, and Istio would copy these to it too; "+
					"set its weight to 0, or remove the mirror", d.Service)
			}
		}
	}
	return port, copied, nil
}

// copiedTo is the Service that a rendered route copies requests to for the split; "" when
// it copies none.
func copiedTo(out, route map[string]any, split traffic.Split) string {
	if split.Mirror == nil || len(mirrorsOf(out)) == len(mirrorsOf(route)) {
		return ""
	}
	return split.Mirror.Service
}

func mirrorsOf(route map[string]any) []any {
	list, _ := route["mirrors"].([]any)
	return list
}

// withoutMirror takes the copy for a split out of a route: the last one to its Service,
// since those of the owner stood before it.
func withoutMirror(route map[string]any, namespace, service string) {
	list := mirrorsOf(route)
	for i, item := range slices.Backward(list) {
		entry, _ := item.(map[string]any)
		to, _ := entry["destination"].(map[string]any)
		if !isService(text(to["host"]), namespace, service) {
			continue
		}
		if route["mirrors"] = slices.Concat(list[:i], list[i+1:]); len(list) == 1 {
			delete(route, "mirrors")
		}
		return
	}
}
