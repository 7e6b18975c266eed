// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/serin-dev/serin/traffic"
)

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

// defaulted is who gets the requests that a limited split does not share.
func defaulted(port traffic.Port) []traffic.Destination {
	if port.Default == nil {
		return nil
	}
	return []traffic.Destination{{Service: port.Default.Service, Port: port.Default.Port, Weight: 1}}
}

// part is one reference of the new list with its exact weight.
type part struct {
	ref    map[string]any
	weight *big.Rat
}

// exchange replaces the root Service by its successors. The shares of all other
// references stay exactly as they are.
//
// A reference to the root with weight w becomes one for each successor d with weight
// w·d/Σd. All weights of the list are then multiplied by one number that makes them
// the smallest whole ones.
func exchange(refs []map[string]any, split traffic.Split, to successors) ([]map[string]any, error) {
	var parts []part
	changed := false
	for _, ref := range refs {
		weight := number(ref, fieldWeight, 1)
		var destinations []traffic.Destination
		if leadsToRoot(ref, split) {
			port, err := portOf(ref, split)
			if err != nil {
				return nil, err
			}
			destinations = to(port)
		}
		if len(destinations) == 0 {
			parts = append(parts, part{ref, big.NewRat(weight, 1)})
			continue
		}
		changed = true
		parts = append(parts, inherit(ref, weight, destinations)...)
	}
	if !changed {
		return refs, nil
	}
	if len(parts) > maxRefs {
		return nil, fmt.Errorf("would have %d backendRefs; the Gateway API allows %d; split among fewer Services", len(parts), maxRefs)
	}
	return weigh(parts)
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

// inherit are the references of the destinations of one reference to the root. They
// keep everything of it, such as its filters.
func inherit(ref map[string]any, weight int64, destinations []traffic.Destination) []part {
	total := int64(0)
	for _, d := range destinations {
		total += int64(d.Weight)
	}
	parts := make([]part, 0, len(destinations))
	for _, d := range destinations {
		successor := copyOf(ref)
		successor[fieldName], successor[fieldPort] = d.Service, int64(d.Port)
		share := big.NewRat(int64(d.Weight), total)
		parts = append(parts, part{successor, share.Mul(share, big.NewRat(weight, 1))})
	}
	return parts
}

// weigh gives the references the smallest whole weights with the same shares.
func weigh(parts []part) ([]map[string]any, error) {
	factor := big.NewInt(1) // the least common multiple of the denominators
	for _, p := range parts {
		common := new(big.Int).GCD(nil, nil, factor, p.weight.Denom())
		factor.Div(new(big.Int).Mul(factor, p.weight.Denom()), common)
	}
	divisor := new(big.Int)
	weights := make([]*big.Int, 0, len(parts))
	for _, p := range parts {
		whole := new(big.Rat).Mul(p.weight, new(big.Rat).SetInt(factor)).Num()
		divisor.GCD(nil, nil, divisor, whole)
		weights = append(weights, whole)
	}
	refs := make([]map[string]any, 0, len(parts))
	for i, p := range parts {
		weight := weights[i].Div(weights[i], divisor) // not 0: the root's own weight is above it
		if weight.Cmp(big.NewInt(maxWeight)) > 0 {
			return nil, fmt.Errorf("would need a backendRef of weight %s; the Gateway API allows %d; write rounder weights", weight, maxWeight)
		}
		refs = append(refs, weighed(p.ref, weight.Int64()))
	}
	return refs, nil
}

func weighed(ref map[string]any, weight int64) map[string]any {
	if number(ref, fieldWeight, 1) == weight && ref[fieldWeight] != nil {
		return ref
	}
	changed := copyOf(ref)
	changed[fieldWeight] = weight
	return changed
}
