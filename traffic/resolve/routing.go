// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// routing is what a split asks of its router beyond the specification, checked.
type routing struct {
	routes    []traffic.Route
	mirror    *traffic.Mirror
	sticky    *traffic.Sticky
	overrides overrides
}

// readRouting reads the routing of a split. With problems, what is right of it is there.
func readRouting(split *splitv1.TrafficSplit) (r routing, problems []traffic.Problem) {
	declared, err := splitv1.RoutingOf(split)
	if err != nil {
		return r, []traffic.Problem{traffic.Refuse(splitv1.ReasonInvalid, "%s", err.Error())}
	}
	note := func(err error) {
		if err != nil {
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s", err.Error()))
		}
	}
	r.routes, err = traffic.RoutesOf(declared)
	note(err)
	r.mirror, err = mirrorOf(declared)
	note(err)
	r.overrides, err = overridesOf(split, declared)
	note(err)
	r.sticky, err = stickyOf(declared)
	note(err)
	return r, problems
}

// mirrorOf reads the mirror of a split; nil when it has none.
func mirrorOf(r splitv1.Routing) (*traffic.Mirror, error) {
	m := r.Mirror
	if m == nil {
		return nil, nil //nolint:nilnil // no mirror is no error
	}
	if m.Percent < 1 || m.Percent > 100 || len(validation.IsDNS1123Label(m.Service)) > 0 {
		return nil, fmt.Errorf("%s: %.100q with percent %d is not a Service with a percentage from 1 to 100; "+
			"write it like {service: website-canary, percent: 10}, or remove it", traffic.FieldMirror, m.Service, m.Percent)
	}
	return &traffic.Mirror{Service: m.Service, Percent: m.Percent}, nil
}

// maxStickyAge is a year.
const maxStickyAge = 365 * 24 * time.Hour

// cookieName is what every data plane can look up: less than what RFC 6265 allows.
var cookieName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// stickyOf reads the sticky cookie of a split; nil when it has none.
func stickyOf(r splitv1.Routing) (*traffic.Sticky, error) {
	cookie := r.StickyCookie
	if cookie == nil {
		return nil, nil //nolint:nilnil // that clients are not sticky is no error
	}
	if !cookieName.MatchString(cookie.Name) {
		return nil, fmt.Errorf("%s.name: %.100q is not the name of a cookie; write a letter followed by letters, digits and _, at most 64, "+
			"such as version, or remove the cookie", traffic.FieldStickyCookie, cookie.Name)
	}
	if cookie.MaxAge == "" {
		return &traffic.Sticky{Cookie: cookie.Name, Session: cookie.Session}, nil
	}
	d, err := time.ParseDuration(cookie.MaxAge)
	if err != nil || d < time.Second || d > maxStickyAge || d%time.Second != 0 {
		return nil, fmt.Errorf("%s.maxAge: %.50q is not the age of a cookie; write whole seconds from 1s to 8760h, such as 12h, "+
			"or remove it for the client's session", traffic.FieldStickyCookie, cookie.MaxAge)
	}
	return &traffic.Sticky{Cookie: cookie.Name, MaxAge: int64(d / time.Second), Session: cookie.Session}, nil
}
