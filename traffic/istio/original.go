// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic/routes"
)

// Original is the spec of a VirtualService as its owner has it, from what is there.
//
// A route that is as it was written is the one that was recorded. Every other one is
// the owner's latest word: it stays, and if it is what was written with a change, its
// backends become the root Service again. So an edit in between is kept, and so is
// what a Git tool wrote over the routes.
func Original(spec map[string]any, namespace string, record Record) map[string]any {
	out := runtime.DeepCopyJSON(spec)
	for _, section := range sections {
		list, found := out[section].([]any)
		if !found {
			continue
		}
		o := owner{namespace: namespace, record: record, section: section}
		for _, r := range record.Routes {
			if r.Section == section {
				o.left = append(o.left, r)
			}
		}
		out[section] = o.routes(list)
	}
	return out
}

// owner undoes the changes of one list.
type owner struct {
	namespace, section string
	record             Record
	// left are the recorded routes that were not found yet.
	left []Recorded
}

func (o *owner) routes(list []any) []any {
	taken := make([]*Recorded, len(list))
	for i, item := range list {
		taken[i] = o.take(routes.Digest(item))
	}
	out := make([]any, 0, len(list))
	for i, item := range list {
		switch route, _ := item.(map[string]any); {
		case taken[i] != nil && taken[i].Added:
		case taken[i] != nil:
			out = append(out, taken[i].Original)
		case o.isAdded(route):
		default:
			out = append(out, o.edited(item))
		}
	}
	return out
}

// take finds the first record of a route that was not found yet.
func (o *owner) take(digest string) *Recorded {
	i := slices.IndexFunc(o.left, func(r Recorded) bool { return r.Digest == digest })
	if i < 0 {
		return nil
	}
	found := o.left[i]
	o.left = slices.Delete(slices.Clone(o.left), i, i+1)
	return &found
}

// isAdded recognises by its name a route of the split that a user edited.
func (o *owner) isAdded(route map[string]any) bool {
	name := text(route["name"])
	mark := markerPrefix + o.record.Split
	return o.section == sectionHTTP && (name == mark || strings.HasPrefix(name, mark+"/"))
}

// edited restores a route that no record has. It was made of a recorded one that is no
// longer there if it names all Services that replaced the root Service.
func (o *owner) edited(item any) any {
	route, _ := item.(map[string]any)
	list, _ := route["route"].([]any)
	destinations, err := parseDestinations(list)
	if err != nil {
		return item
	}
	i := slices.IndexFunc(o.left, func(r Recorded) bool {
		return !r.Added && len(r.Services) > 0 && o.namesAll(destinations, r.Services)
	})
	if i < 0 {
		return item
	}
	was := o.left[i]
	o.left = slices.Delete(slices.Clone(o.left), i, i+1)
	out := runtime.DeepCopyJSON(route)
	out["route"] = o.fold(destinations, was.Services)
	if was.Mirror != "" {
		withoutMirror(out, o.namespace, was.Mirror)
	}
	return out
}

func (o *owner) namesAll(destinations []destination, services []string) bool {
	return !slices.ContainsFunc(services, func(service string) bool {
		return !slices.ContainsFunc(destinations, func(d destination) bool { return isService(d.host, o.namespace, service) })
	})
}

// fold puts the root Service in the place of the backends again, with the sum of
// their weights. Backends in different subsets or ports stay apart.
func (o *owner) fold(destinations []destination, services []string) []any {
	var out []any
	at := map[string]int{}
	for _, d := range destinations {
		entry := runtime.DeepCopyJSON(d.entry)
		if !slices.ContainsFunc(services, func(s string) bool { return isService(d.host, o.namespace, s) }) {
			out = append(out, entry)
			continue
		}
		to, _ := entry["destination"].(map[string]any)
		to["host"] = hostOf(d.host).named(o.record.Root)
		key := routes.Digest(to)
		if i, found := at[key]; found {
			first, _ := out[i].(map[string]any)
			first["weight"] = whole(first["weight"]) + whole(entry["weight"])
			continue
		}
		at[key] = len(out)
		out = append(out, entry)
	}
	if len(out) == 1 {
		entry, _ := out[0].(map[string]any)
		delete(entry, "weight")
	}
	return out
}
