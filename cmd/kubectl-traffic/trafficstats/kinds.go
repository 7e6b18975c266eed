// SPDX-License-Identifier: Apache-2.0

package trafficstats

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// short are the short names that kubectl knows.
var short = map[string]string{
	"ns": "namespaces", "no": "nodes", "po": "pods", "rc": "replicationcontrollers", "svc": "services", "ds": "daemonsets",
	"deploy": "deployments", "rs": "replicasets", "sts": "statefulsets", "ts": "trafficsplits",
}

// KindOf finds a kind by its plural, singular or short name, with or without its group.
func KindOf(name string) (observe.Kind, error) {
	plain, _, _ := strings.Cut(strings.ToLower(name), ".")
	for _, k := range observe.Kinds {
		if plain == k.Resource || plain == strings.ToLower(k.Kind) || short[plain] == k.Resource {
			return k, nil
		}
	}
	return observe.Kind{}, fmt.Errorf("%q has no TrafficMetrics; take one of %s", name, strings.Join(KindNames(), ", "))
}

// KindNames are the plurals of all kinds.
func KindNames() []string {
	names := make([]string, 0, len(observe.Kinds))
	for _, k := range observe.Kinds {
		names = append(names, k.Resource)
	}
	return names
}
