// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
)

// rule is a DestinationRule: what Istio's proxies do with connections to a host.
type rule struct {
	name string
	spec map[string]any
	// own is true for a copy that a split made.
	own bool
}

// makeRules are the DestinationRules for the backends of a split: those of the root
// Service with another host, so that its encryption, limits and subsets apply to the
// backends as well. A subset keeps the labels that it selects by, so a route to it
// reaches pods of the backend that are in it, and no others. A backend for which
// a user made a rule keeps that one, which must then have the subsets.
func makeRules(rules []rule, split traffic.Split) ([]rule, *unfitRule) {
	var out []rule
	for _, r := range rules {
		host := text(r.spec["host"])
		if r.own || !isService(host, split.Namespace, split.Root) {
			continue
		}
		for _, service := range sentTo(split) {
			if i := slices.IndexFunc(rules, func(o rule) bool { return !o.own && isService(text(o.spec["host"]), split.Namespace, service) }); i >= 0 {
				if missing := lacksSubset(rules[i].spec, r.spec); missing != "" {
					return nil, &unfitRule{rules[i].name, fmt.Sprintf("the rule of Service %q lacks the subset %q that DestinationRule %q of Service %q has; "+
						"add it, or delete the rule", service, missing, r.name, split.Root)}
				}
				continue
			}
			spec := runtime.DeepCopyJSON(r.spec)
			spec["host"] = hostOf(host).named(service)
			out = append(out, rule{name: ruleName(split.Name, r.name, service), spec: spec, own: true})
		}
	}
	return out, nil
}

// unfitRule is a rule of a user that does not fit those of the root Service.
type unfitRule struct {
	name, why string
}

// sentTo are all Services that a split sends requests to.
func sentTo(split traffic.Split) []string {
	names := backendNames(split)
	for _, p := range split.Ports {
		if p.Default != nil {
			names = appendNew(names, p.Default.Service)
		}
		if p.Mirror != nil {
			names = appendNew(names, p.Mirror.Service)
		}
	}
	return names
}

// lacksSubset is the first subset of the wanted rule that the other one lacks.
func lacksSubset(has, wanted map[string]any) string {
	theirs := subsets(has)
	for _, name := range subsets(wanted) {
		if !slices.Contains(theirs, name) {
			return name
		}
	}
	return ""
}

func subsets(spec map[string]any) []string {
	list, _ := spec["subsets"].([]any)
	var names []string
	for _, item := range list {
		subset, _ := item.(map[string]any)
		names = append(names, text(subset["name"]))
	}
	return names
}
