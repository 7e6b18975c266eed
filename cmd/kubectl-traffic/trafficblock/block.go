// SPDX-License-Identifier: Apache-2.0

package trafficblock

import (
	"cmp"
	"maps"
	"slices"
)

// Target gives a share of the traffic to a Service, which can also be reached by the
// tag alone.
type Target struct {
	Service string
	// Tag is unique in a block; "" means none.
	Tag string
	// Weight is the share relative to the sum of the block.
	Weight int32
}

// Backend is a Service with the sum of the weights of its targets.
type Backend struct {
	Service string
	Weight  int32
}

// Block is who gets the traffic, in order.
type Block []Target

// Read makes a block of the backends of a split and of its tags, which map a tag to a
// Service. The first tag of a Service, in the order of the alphabet, has its whole
// weight: how several targets of a Service shared it is not kept.
func Read(backends []Backend, tags map[string]string) Block {
	var block Block
	names := slices.Sorted(maps.Keys(tags))
	seen := map[string]bool{}
	for _, b := range backends {
		seen[b.Service] = true
		weight, tagged := b.Weight, false
		for _, tag := range names {
			if tags[tag] != b.Service {
				continue
			}
			block = append(block, Target{Service: b.Service, Tag: tag, Weight: weight})
			weight, tagged = 0, true
		}
		if !tagged {
			block = append(block, Target{Service: b.Service, Weight: weight})
		}
	}
	for _, tag := range names {
		if !seen[tags[tag]] {
			block = append(block, Target{Service: tags[tag], Tag: tag})
		}
	}
	return block
}

// Backends are the Services of the block in the order of their first targets.
func (b Block) Backends() []Backend {
	var list []Backend
	for _, t := range b {
		i := slices.IndexFunc(list, func(known Backend) bool { return known.Service == t.Service })
		if i < 0 {
			list = append(list, Backend{Service: t.Service, Weight: t.Weight})
			continue
		}
		list[i].Weight += t.Weight
	}
	return list
}

// Tags map each tag to its Service.
func (b Block) Tags() map[string]string {
	tags := map[string]string{}
	for _, t := range b {
		if t.Tag != "" {
			tags[t.Tag] = t.Service
		}
	}
	return tags
}

// Percents are the shares of the backends in whole percent. They sum to 100: what
// rounding leaves over goes to the largest remainders, the first of equals before.
// They are all 0 where the weights are.
func Percents(backends []Backend) []int {
	percents := make([]int, len(backends))
	var sum int64
	for _, b := range backends {
		sum += int64(b.Weight)
	}
	if sum == 0 {
		return percents
	}
	left := 100
	order := make([]int, len(backends))
	for i, b := range backends {
		order[i] = i
		percents[i] = int(int64(b.Weight) * 100 / sum)
		left -= percents[i]
	}
	remainder := func(i int) int64 { return int64(backends[i].Weight) * 100 % sum }
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(remainder(j), remainder(i)) })
	for _, i := range order[:left] {
		percents[i]++
	}
	return percents
}

// withTag is the index of the target that has a tag, or -1.
func (b Block) withTag(tag string) int {
	return slices.IndexFunc(b, func(t Target) bool { return t.Tag == tag })
}

// find is the index of what a reference names, or -1: a tag is looked up before the
// name of a Service, because it is unique and the name is not.
func (b Block) find(reference string) int {
	if i := b.withTag(reference); i >= 0 {
		return i
	}
	return slices.IndexFunc(b, func(t Target) bool { return t.Service == reference })
}
