// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// Names of fields of routes.
const (
	fieldMatches     = "matches"
	fieldFilters     = "filters"
	fieldBackendRefs = "backendRefs"
	fieldWeight      = "weight"
	fieldName        = "name"
	fieldPort        = "port"
	fieldKind        = "kind"
	fieldType        = "type"
	fieldValue       = "value"
	fieldHeaders     = "headers"
	fieldMethod      = "method"
	fieldPath        = "path"
	fieldSessions    = "sessionPersistence"
)

// kindService is the kind of backends.
const kindService = "Service"

// objectsOf are the objects of a list. What is no object is left out: the API server
// lets none through.
func objectsOf(list any) []map[string]any {
	items, _ := list.([]any)
	objects := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// listOf is the opposite of objectsOf.
func listOf(objects []map[string]any) []any {
	list := make([]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object)
	}
	return list
}

// text is a field that is a string, or "" when it is absent or something else.
func text(object map[string]any, field string) string {
	s, _ := object[field].(string)
	return s
}

// number is a field that is a number, or otherwise when it is absent.
func number(object map[string]any, field string, otherwise int64) int64 {
	switch n := object[field].(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	default:
		return otherwise
	}
}

// copyOf is a deep copy.
func copyOf(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }

// with is a rule with another list of references.
func with(rule map[string]any, refs []map[string]any) map[string]any {
	changed := maps.Clone(rule)
	changed[fieldBackendRefs] = listOf(refs)
	return changed
}

// leadsToRoot is true for a reference that sends traffic to the root Service. Its
// namespace is the split's own.
func leadsToRoot(ref map[string]any, split traffic.Split) bool {
	namespace := text(ref, "namespace")
	return text(ref, "group") == "" && slices.Contains([]string{"", kindService}, text(ref, fieldKind)) &&
		text(ref, fieldName) == split.Root && (namespace == "" || namespace == split.Namespace) &&
		number(ref, fieldWeight, 1) > 0
}

// concerned is true for a rule that sends traffic to the root Service.
func concerned(rule map[string]any, split traffic.Split) bool {
	return slices.ContainsFunc(objectsOf(rule[fieldBackendRefs]), func(ref map[string]any) bool { return leadsToRoot(ref, split) })
}

// Limits of the Gateway API.
const (
	// maxRefs is the most references of a rule.
	maxRefs = 16
	// maxWeight is the most that a reference can weigh.
	maxWeight = 1_000_000
)

// successors are the destinations that replace the root Service on a port, by their
// weights. With none, the reference to the root Service stays.
type successors func(traffic.Port) []traffic.Destination

// shared are the backends of the split.
func shared(port traffic.Port) []traffic.Destination {
	if port.TotalWeight() == 0 {
		return nil
	}
	return port.Destinations
}

// weighing leaves out destinations of weight 0. A client keeps the backend of its session also
// at weight 0, as long as the rule names that backend.
func weighing(to successors) successors {
	return func(port traffic.Port) []traffic.Destination {
		return slices.DeleteFunc(slices.Clone(to(port)), func(d traffic.Destination) bool { return d.Weight == 0 })
	}
}

// defaulted is who gets the requests that a limited split does not share.
func defaulted(port traffic.Port) []traffic.Destination {
	if port.Default == nil {
		return nil
	}
	return []traffic.Destination{{Service: port.Default.Service, Port: port.Default.Port, Weight: 1}}
}

// exchange replaces the root Service by its successors. The shares of all other
// references stay exactly as they are: see routes.Weights.
func exchange(refs []map[string]any, split traffic.Split, to successors) ([]map[string]any, error) {
	shares, chosen := make([]routes.Share, len(refs)), make([][]traffic.Destination, len(refs))
	total, changed := 0, false
	for i, ref := range refs {
		shares[i].Weight = number(ref, fieldWeight, 1)
		if leadsToRoot(ref, split) {
			port, err := portOf(ref, split)
			if err != nil {
				return nil, err
			}
			chosen[i] = to(port)
		}
		for _, d := range chosen[i] {
			shares[i].Parts = append(shares[i].Parts, int64(d.Weight))
			changed = true
		}
		total += max(1, len(chosen[i]))
	}
	if !changed {
		return refs, nil
	}
	if total > maxRefs {
		return nil, fmt.Errorf("would have %d backendRefs; the Gateway API allows %d; split among fewer Services", total, maxRefs)
	}
	return inherit(refs, chosen, routes.Weights(shares))
}

// inherit writes the references of the destinations. They keep everything of the one to
// the root, such as its filters.
func inherit(refs []map[string]any, chosen [][]traffic.Destination, weights [][]*big.Int) ([]map[string]any, error) {
	var out []map[string]any
	for i, ref := range refs {
		for j, weight := range weights[i] {
			if weight.Cmp(big.NewInt(maxWeight)) > 0 {
				return nil, fmt.Errorf("would need a backendRef of weight %s; the Gateway API allows %d; write rounder weights", weight, maxWeight)
			}
			successor := ref
			if len(chosen[i]) > 0 {
				successor = copyOf(ref)
				successor[fieldName], successor[fieldPort] = chosen[i][j].Service, int64(chosen[i][j].Port)
			}
			out = append(out, weighed(successor, weight.Int64()))
		}
	}
	return out, nil
}

// portOf finds the root Service's port that a reference names.
func portOf(ref map[string]any, split traffic.Split) (traffic.Port, error) {
	wanted := number(ref, fieldPort, 0)
	i := slices.IndexFunc(split.Ports, func(p traffic.Port) bool { return int64(p.Number) == wanted })
	if i < 0 {
		return traffic.Port{}, fmt.Errorf("refers to port %d, which Service %q does not have; name one of its ports", wanted, split.Root)
	}
	return split.Ports[i], nil
}

func weighed(ref map[string]any, weight int64) map[string]any {
	if number(ref, fieldWeight, 1) == weight && ref[fieldWeight] != nil {
		return ref
	}
	changed := copyOf(ref)
	changed[fieldWeight] = weight
	return changed
}
