// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// fieldSessionName is the field of sessions that has their name.
const fieldSessionName = "sessionName"

// sessionsOf is the field of a rule that has clients come back, with every field that the API
// server would fill in. A cookie that outlives the client's session needs a lifetime.
func sessionsOf(sticky traffic.Sticky) map[string]any {
	sessions := map[string]any{fieldType: "Cookie", fieldSessionName: sessionName(sticky.Cookie, sticky.Session)}
	if sticky.MaxAge > 0 {
		sessions["absoluteTimeout"] = (time.Duration(sticky.MaxAge) * time.Second).String()
		sessions["cookieConfig"] = map[string]any{"lifetimeType": "Permanent"}
	}
	return sessions
}

// sessionName is another one for each release: a gateway may know a version by its Service alone,
// which has the same name in the next release.
func sessionName(cookie, session string) string {
	if session == "" {
		return cookie
	}
	return cookie + "_" + routes.Digest(session)[:8]
}

// checkSessions refuses clients that are to stay where a rule can't say so. Where one backend has
// all the weight, no rule has to: a split that is refused is not programmed, and a rollback must be.
func (r *renderer) checkSessions() error {
	divided := slices.ContainsFunc(r.split.Ports, func(p traffic.Port) bool { return len(weighing(shared)(p)) > 1 })
	const field = traffic.FieldStickyCookie + " (spec.sessionAffinity of a Rollout)"
	switch {
	case r.split.Sticky == nil || !divided:
		return nil
	case !readsRequests(r.kind):
		return fmt.Errorf("%s: a %s passes connections on unread, so it has no cookies; use an HTTPRoute, or remove it", field, r.kind)
	case !r.schema.Sessions[r.kind]:
		return fmt.Errorf("%s: the %ss of this cluster had no field %s when the operator started; install the experimental channel of the Gateway API and restart the operator, "+
			"choose the router nginx, or remove it", field, r.kind, fieldSessions)
	}
	return nil
}

// keeping is a rule with other references, whose clients come back if several backends took the place
// of one. The sessions that its owner gave it stay as they are.
func (r *renderer) keeping(rule map[string]any, refs []map[string]any) map[string]any {
	changed := with(rule, refs)
	if r.split.Sticky != nil && rule[fieldSessions] == nil && len(refs) > len(objectsOf(rule[fieldBackendRefs])) {
		changed[fieldSessions] = sessionsOf(*r.split.Sticky)
	}
	return changed
}

// withoutSessions removes what had clients come back from a rule that a user changed.
func (r record) withoutSessions(rule map[string]any) map[string]any {
	sessions, _ := rule[fieldSessions].(map[string]any)
	if r.Sessions == "" || text(sessions, fieldSessionName) != r.Sessions {
		return rule
	}
	changed := maps.Clone(rule)
	delete(changed, fieldSessions)
	return changed
}
