// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic/gatewayapi"
)

// routeWithSessions has a rule whose owner keeps clients, beside one that leads to the root Service too.
const routeWithSessions = websiteRoute + `    - matches: [{path: {type: PathPrefix, value: /account}}]
      sessionPersistence: {sessionName: account}
      backendRefs: [{name: website, port: 80}]
`

// behindGateway is a play whose traffic a gateway shares by the route of a user.
func behindGateway(t *testing.T, route string, see ...func(*sight)) *stage {
	t.Helper()
	p := begin(t, func(c *cast) {
		c.rollout.Spec.Router = v1alpha1.RouterGatewayAPI
		c.rollout.Spec.RouteRefs = []v1alpha1.RouteReference{{Kind: "HTTPRoute", Name: "website"}}
		c.extras = append(c.extras, routeOf(t, route))
		c.sight = append(c.sight, append(see, withGateway)...)
	})
	p.promise.oneVersion = true
	p.confirmRoutes(gatewayRoutes...)
	return p
}

// seenRoutes are the forms of the spec that a route had, each once in a row.
type seenRoutes struct {
	mu    sync.Mutex
	forms []string
}

func (s *scene) watchRoute() *seenRoutes {
	s.Helper()
	seen := &seenRoutes{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gatewayKind("HTTPRouteList"))
	s.watch(list, func(_ watch.Event, o client.Object) {
		route, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if form := backendsIn(route) + sessionsIn(route); len(seen.forms) == 0 || seen.forms[len(seen.forms)-1] != form {
			seen.forms = append(seen.forms, form)
		}
	})
	return seen
}

func (r *seenRoutes) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.forms...)
}

// sessionsIn are the sessions of each rule that has some.
func sessionsIn(route *unstructured.Unstructured) string {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	var out strings.Builder
	for i, rule := range rules {
		if sessions, found, _ := unstructured.NestedMap(rule.(map[string]any), "sessionPersistence"); found {
			fmt.Fprintf(&out, " %d:%v", i, sessions)
		}
	}
	return out.String()
}

// The rules of a route keep clients while two versions share them. A rollback and a promotion end the
// sessions, and at the end the route is what its owner wrote.
func TestAGatewayKeepsClientsForTheTimeOfARelease(t *testing.T) {
	t.Parallel()
	p := behindGateway(t, routeWithSessions)
	p.edit(func(spec *v1alpha1.RolloutSpec) {
		spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: "version", MaxAge: "2h"}
	})
	before := p.route("HTTPRoute", "website")
	seen := p.watchRoute()
	p.release()
	p.decide(v1alpha1.ControlAbort)
	p.waitReason(v1alpha1.ReasonRolledBack)
	p.eventually("the route is restored", func(context.Context) bool { return cmp.Equal(specOf(before), specOf(p.route("HTTPRoute", "website"))) })
	p.eventually("the watch has heard of it", func(context.Context) bool {
		forms := seen.all()
		return len(forms) > 2 && forms[len(forms)-1] == forms[0]
	})
	first := p.checkKept(seen.all())

	p.setImage("example.invalid/app:v3")
	p.held(0)
	second := sessionsIn(p.route("HTTPRoute", "website"))
	if second == first || !strings.Contains(second, "sessionName:version_") {
		t.Errorf("the sessions of the second release are %s, those of the first %s", second, first)
	}
}

// checkKept looks at the forms of a route in a release that was rolled back, and returns its sessions while
// both versions shared it.
func (p *stage) checkKept(forms []string) (sessions string) {
	p.Helper()
	const (
		owner   = "basket=1 website=1 website=1 2:map[sessionName:account type:Cookie]"
		drained = "basket=1 website-stable=1 website-stable=1 2:map[sessionName:account type:Cookie]"
		shared  = "basket=1 website-stable=4,website-canary=1 website-stable=4,website-canary=1"
	)
	last := len(forms) - 1
	for i, form := range forms {
		switch {
		case form == owner && (i == 0 || i == last), form == drained && i > 0 && i < last:
		case strings.HasPrefix(form, shared) && i < last && forms[i+1] == drained:
			sessions = strings.TrimPrefix(form, shared)
		default:
			p.Errorf("the route was %s, as number %d of %d", form, i+1, len(forms))
		}
	}
	if !strings.HasPrefix(sessions, " 1:map[absoluteTimeout:2h0m0s cookieConfig:map[lifetimeType:Permanent] sessionName:version_") ||
		!strings.HasSuffix(sessions, " type:Cookie] 2:map[sessionName:account type:Cookie]") {
		p.Errorf("while versions shared the route, its sessions were %q; it was %s", sessions, strings.Join(forms, "\n"))
	}
	return sessions
}

// A Rollout that wants what the routes of the cluster can't say is told so, and is rolled back all the same.
func TestWithoutSessionsInRoutesARolloutSaysSoAndRollsBack(t *testing.T) {
	t.Parallel()
	p := behindGateway(t, websiteRoute, sessionless)
	before := p.route("HTTPRoute", "website")
	p.release()
	p.edit(func(spec *v1alpha1.RolloutSpec) {
		spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: "version"}
	})
	const fix = "(spec.sessionAffinity of a Rollout): the HTTPRoutes of this cluster had no field sessionPersistence when the operator started; " +
		"install the experimental channel of the Gateway API and restart the operator, choose the router nginx, or remove it"
	p.eventually("the Rollout says what to do", func(context.Context) bool {
		return strings.Contains(meta.FindStatusCondition(p.rollout().Status.Conditions, v1alpha1.ConditionTrafficRouted).Message, fix)
	})
	if got, want := backendsIn(p.route("HTTPRoute", "website")), "basket=1 website-stable=4,website-canary=1"; got != want {
		t.Errorf("the route names %s, want %s as before", got, want)
	}
	p.decide(v1alpha1.ControlAbort)
	p.waitReason(v1alpha1.ReasonRolledBack)
	p.eventually("the route is restored", func(context.Context) bool { return cmp.Equal(specOf(before), specOf(p.route("HTTPRoute", "website"))) })
}

// The operator reads in the published definitions whether rules can keep clients.
func TestTheExperimentalChannelOfTheGatewayAPIHasSessions(t *testing.T) {
	t.Parallel()
	version := schema.GroupVersion{Group: gatewayv1.GroupName, Version: "v1"}
	for channel, want := range map[string]bool{"standard": false, "experimental": true} {
		definitions, err := gatewayKindsOf(t.Context(), channel)
		if err != nil {
			t.Fatal(err)
		}
		mapper, schemas := meta.NewDefaultRESTMapper(nil), map[string]any{}
		for _, definition := range definitions {
			kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			for _, v := range versions {
				if name, _, _ := unstructured.NestedString(v.(map[string]any), "name"); name == version.Version {
					mapper.Add(version.WithKind(kind), meta.RESTScopeNamespace)
					schemas["io.k8s.networking.gateway.v1."+kind], _, _ = unstructured.NestedMap(v.(map[string]any), "schema", "openAPIV3Schema")
				}
			}
		}
		document, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": schemas}})
		if err != nil {
			t.Fatal(err)
		}
		documents := openapitest.FakeClient{PathsMap: map[string]openapi.GroupVersion{"apis/" + version.String(): openapitest.FakeGroupVersion{GVSpec: document}}}
		found, err := gatewayapi.Discover(mapper, documents)
		if diff := cmp.Diff(map[string]bool{"HTTPRoute": want, "GRPCRoute": want}, found.Schema.Sessions); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", channel, err, diff)
		}
	}
}
