// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
)

// The lists of routes in the spec of a VirtualService.
const (
	sectionHTTP = "http"
	sectionTLS  = "tls"
	sectionTCP  = "tcp"
)

var sections = []string{sectionHTTP, sectionTLS, sectionTCP}

// markerPrefix begins the names of the HTTP routes that a limited split adds.
const markerPrefix = "serin.dev/"

// Render is the spec of a VirtualService with the backends of a split in the place
// of its root Service, and the record from which Original makes the spec again as
// its owner has it. With names in only, it changes no other routes than the HTTP routes
// of these names.
//
// Only destinations that are the root Service change, in the order in which they
// are; everything else stays as it is. A limited split adds, before each HTTP route
// that leads to the root Service, one for the requests that match: the first route
// that matches wins.
func Render(spec map[string]any, split traffic.Split, only []string) (map[string]any, Record, error) {
	out := runtime.DeepCopyJSON(spec)
	record := Record{Split: split.Name, Root: split.Root}
	changed := false
	for _, section := range sections {
		list, _ := spec[section].([]any)
		routes := make([]any, 0, len(list))
		for i, item := range list {
			rendered, err := renderRoute(section, item, split, only)
			if err != nil {
				return nil, Record{}, fmt.Errorf("%s: %w", describe(section, item, i), err)
			}
			routes = append(routes, rendered.all()...)
			changed = changed || rendered.changed
			record.add(section, item, rendered)
		}
		if len(list) > 0 {
			out[section] = routes
		}
	}
	if !changed {
		return nil, Record{}, nothingToChange(split, only)
	}
	return out, record, nil
}

func nothingToChange(split traffic.Split, only []string) error {
	if len(only) > 0 {
		return fmt.Errorf("has no HTTP route named %q with a destination that is Service %q; name one that has", strings.Join(only, ","), split.Root)
	}
	return fmt.Errorf("has no destination that is Service %q; name a VirtualService that has", split.Root)
}

// describe names a route in messages. One without a name goes by its place in the list,
// from 0.
func describe(section string, item any, index int) string {
	route, _ := item.(map[string]any)
	if name, _ := route["name"].(string); name != "" {
		return fmt.Sprintf("spec.%s, route %q", section, name)
	}
	return fmt.Sprintf("spec.%s, route %d", section, index)
}

// rendered is what becomes of one route.
type rendered struct {
	// added stands before the route; nil when nothing does.
	added map[string]any
	route any
	// changed is true when the route leads to the root Service, and so is the split's.
	changed bool
	// services that take the place of the root Service.
	services []string
	// mirror is the Service that the route copies requests to for the split; "" for none.
	mirror string
}

func (r rendered) all() []any {
	if r.added == nil {
		return []any{r.route}
	}
	return []any{r.added, r.route}
}

func renderRoute(section string, item any, split traffic.Split, only []string) (rendered, error) {
	route, ok := item.(map[string]any)
	same := rendered{route: item}
	if !ok || !leadsTo(route, split) || len(only) > 0 && (section != sectionHTTP || !slices.Contains(only, text(route["name"]))) {
		return same, nil
	}
	if section != sectionHTTP {
		if split.Limited || split.Mirror != nil {
			return same, errors.New("its connections are passed through unread, so their requests can't be matched or mirrored; " +
				"remove spec.matches and the mirror")
		}
		return renderShared(route, split)
	}
	if !split.Limited {
		out, err := renderShared(route, split)
		if err != nil {
			return out, err
		}
		changed, _ := out.route.(map[string]any)
		err = addMirror(changed, route, split)
		out.mirror = copiedTo(changed, route, split)
		return out, err
	}
	return renderLimited(route, split)
}

// leadsTo is true when a destination of a route is a port of the root Service.
func leadsTo(route map[string]any, split traffic.Split) bool {
	list, _ := route["route"].([]any)
	destinations, err := parseDestinations(list)
	if err != nil {
		return false
	}
	for _, d := range destinations {
		if isService(d.host, split.Namespace, split.Root) && len(d.portsOf(split)) > 0 {
			return true
		}
	}
	return false
}

// withDestinations is a copy of a route with other destinations.
func withDestinations(route map[string]any, split traffic.Split, by chooser) (map[string]any, error) {
	list, _ := route["route"].([]any)
	replaced, err := replace(list, split, by)
	if err != nil {
		return nil, err
	}
	out := runtime.DeepCopyJSON(route)
	out["route"] = replaced
	return out, nil
}

func renderShared(route map[string]any, split traffic.Split) (rendered, error) {
	out, err := withDestinations(route, split, byWeight)
	if err != nil {
		return rendered{route: route}, err
	}
	return rendered{route: out, changed: true, services: backendNames(split)}, nil
}

// renderLimited adds a route for the requests that match. The others go on to the
// route itself, whose destinations become the default backend where one is named.
func renderLimited(route map[string]any, split traffic.Split) (rendered, error) {
	same := rendered{route: route}
	rest, err := withDestinations(route, split, byDefault)
	if err != nil {
		return same, err
	}
	out := rendered{route: rest, changed: true, services: defaultNames(split)}
	blocks, _ := route["match"].([]any)
	limited, err := limit(blocks, split.Matches)
	if err != nil {
		return same, err
	}
	if len(limited) == 0 {
		return out, nil // no request can match both
	}
	if out.added, err = withDestinations(route, split, byWeight); err != nil {
		return same, err
	}
	out.added["match"] = limited
	out.added["name"] = strings.TrimSuffix(markerPrefix+split.Name+"/"+text(route["name"]), "/")
	return out, addMirror(out.added, route, split)
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func backendNames(split traffic.Split) []string {
	var names []string
	for _, p := range split.Ports {
		for _, d := range p.Destinations {
			names = appendNew(names, d.Service)
		}
	}
	return names
}

func defaultNames(split traffic.Split) []string {
	var names []string
	for _, p := range split.Ports {
		if p.Default != nil {
			names = appendNew(names, p.Default.Service)
		}
	}
	return names
}

func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
