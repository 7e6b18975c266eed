// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/serin-dev/serin/traffic"
)

// maxFilters is the most filters of a rule.
const maxFilters = 16

// checkMirror refuses a mirror that would copy other requests than it has to.
func (r *renderer) checkMirror() error {
	mirror := r.split.Mirror
	if mirror == nil {
		return nil
	}
	if mirror.Percent < 100 && !r.schema.MirrorPercent {
		return fmt.Errorf("%s: this cluster's version of the Gateway API mirrors all requests or none; write percent 100, or install version 1.3 or later", traffic.FieldMirror)
	}
	for _, port := range r.split.Ports {
		answers := func(d traffic.Destination) bool { return d.Service == mirror.Service && d.Weight > 0 }
		if slices.ContainsFunc(port.Destinations, answers) || port.Default != nil && port.Default.Service == mirror.Service {
			return fmt.Errorf("%s: Service %q answers requests too, and the Gateway API would copy those to it as well; give it the weight 0 while it gets copies", traffic.FieldMirror, mirror.Service)
		}
	}
	return nil
}

// mirrored adds the filter that copies the requests of a rule. A rule that also sends
// requests elsewhere is refused: theirs would be copied as well.
func (r *renderer) mirrored(rule map[string]any) (map[string]any, error) {
	if r.split.Mirror == nil {
		return rule, nil
	}
	var to *traffic.Destination
	for _, ref := range objectsOf(rule[fieldBackendRefs]) {
		switch {
		case number(ref, fieldWeight, 1) == 0:
			continue
		case !leadsToRoot(ref, r.split):
			return nil, fmt.Errorf("backendRefs: sends requests to %q as well, which %s would copy too; give it a rule of its own", text(ref, fieldName), traffic.FieldMirror)
		}
		port, err := portOf(ref, r.split)
		if err != nil {
			return nil, fmt.Errorf("backendRefs: %w", err)
		}
		if port.Mirror == nil {
			return rule, nil // Resolve has reported it
		}
		to = port.Mirror
	}
	changed := copyOf(rule)
	filters := append(objectsOf(changed[fieldFilters]), mirrorFilter(*to, r.split.Mirror.Percent))
	if len(filters) > maxFilters {
		return nil, errors.New("filters: has no room for the mirror's filter; remove one")
	}
	changed[fieldFilters] = listOf(filters)
	return changed, nil
}

// mirrorFilter has every field that the API server would fill in.
func mirrorFilter(to traffic.Destination, percent int32) map[string]any {
	mirror := map[string]any{
		"backendRef": map[string]any{"group": "", fieldKind: kindService, fieldName: to.Service, fieldPort: int64(to.Port)},
	}
	if percent < 100 { // all is what no number means, in every version of the API
		mirror["percent"] = int64(percent)
	}
	return map[string]any{fieldType: "RequestMirror", "requestMirror": mirror}
}
