// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"regexp"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// defaultAffinity is how many seconds a client of Flagger stays, where it says nothing.
const defaultAffinity = 24 * 60 * 60

// notInCookie are the characters that the name of Serin's cookie can't have.
var notInCookie = regexp.MustCompile(`[^A-Za-z0-9_]`)

// affinity converts the cookie by which clients stay with a version, where the router has one.
func (c *canary) affinity(f source.Field) {
	if !f.Present() {
		return
	}
	name := f.At("cookieName").Text()
	age := time.Duration(f.At("maxAge").Int(defaultAffinity, 1, 1<<31-1)) * time.Second
	for _, unused := range []string{"domain", "path", "secure", "httpOnly", "partitioned", "sameSite", "primaryCookieName"} {
		if f.At(unused).Present() {
			f.At(unused).Read().Note(source.NoEqual, "the cookie is for the whole site and closed to scripts: Path=/, HttpOnly, SameSite=Lax")
		}
	}
	switch spec := &c.serin.Spec; {
	case spec.Router != "" && spec.Router != v1alpha1.RouterNginx && spec.Router != v1alpha1.RouterGatewayAPI:
		f.Note(source.NoEqual, "the router %s keeps no clients on a version: write sessionAffinity with router: nginx or gatewayAPI", spec.Router)
	case spec.Strategy.Type == v1alpha1.StrategyBlueGreen:
		f.Note(source.NoEqual, "a blue-green release moves all clients at once, so none stays on a version")
	case name == "":
		f.At("cookieName").Missing("name the cookie")
	default:
		spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: notInCookie.ReplaceAllString(name, "_"), MaxAge: target.Duration(age)}
		if spec.Router == v1alpha1.RouterGatewayAPI {
			f.Note(source.ToDo, "see whether the gateway honours sessionPersistence of an HTTPRoute, by which Serin has it keep clients; Flagger sets its cookie by filters of the route")
		}
		f.Note(source.Differs, "clients that meet the old version stay with it too, so that the weights are the shares of new clients; Flagger draws them again with each request")
	}
}
