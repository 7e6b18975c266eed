// SPDX-License-Identifier: Apache-2.0

package networkpolicy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/networkpolicy"
)

var (
	namespaces = map[string]map[string]string{
		"shop":         {"kubernetes.io/metadata.name": "shop", "team": "shop"},
		"other":        {"kubernetes.io/metadata.name": "other", "team": "other"},
		"serin-system": {"kubernetes.io/metadata.name": "serin-system"},
	}
	web = func(version, address string) pod {
		return pod{"shop", "web-" + version, address, map[string]string{"app": "web", "tier": "front", "version": version}, []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {ContainerPort: 9000, Protocol: corev1.ProtocolTCP},
		}}
	}
	app     = []pod{web("1", "10.0.0.1"), web("2", "10.0.0.2")}
	proxy   = pod{"shop", "proxy", "10.0.9.9", map[string]string{traffic.LabelProxy: "web"}, []corev1.ContainerPort{{Name: "http", ContainerPort: 18042}, {ContainerPort: 9000}, {Name: "serin-status", ContainerPort: 15020}}}
	manager = pod{"serin-system", "manager", "10.0.8.8", map[string]string{"app": "serin"}, nil}
	others  = []pod{
		{"shop", "client", "10.0.1.1", map[string]string{"app": "client"}, nil},
		{"shop", "db", "10.0.1.2", map[string]string{"app": "db", "tier": "back"}, []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		{"shop", "bare", "10.0.1.3", nil, nil},
		{"other", "client", "10.0.2.1", map[string]string{"app": "client"}, nil},
		{"other", "web", "10.0.2.2", map[string]string{"app": "web"}, []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		manager,
	}
	// ways are the two ports of the app, with the listeners that stand in for them.
	ways = []struct{ app, proxy int32 }{{8080, 18042}, {9000, 9000}}
)

// facts are those of a split of the app, with policies of users.
func facts(policies []*networkingv1.NetworkPolicy, pods ...pod) networkpolicy.Facts {
	service := func(name string, selector map[string]string) networkpolicy.Service {
		s := networkpolicy.Service{Name: name, Selector: selector, Targets: []intstr.IntOrString{intstr.FromString("http"), intstr.FromInt32(9000)}}
		for _, p := range pods {
			if chosen(&metav1.LabelSelector{MatchLabels: selector}, p.labels) {
				s.Pods = append(s.Pods, networkpolicy.Pod{Labels: p.labels, Ports: p.ports, Addresses: []string{p.address}})
			}
		}
		return s
	}
	return networkpolicy.Facts{
		Split: "web", Namespace: "shop", NamespaceLabels: namespaces["shop"], Policies: policies,
		Listeners: []networkpolicy.Listener{
			{Number: 18042, Name: "http", Protocol: corev1.ProtocolTCP}, {Number: 9000, Protocol: corev1.ProtocolTCP},
		},
		Root: service("web", map[string]string{"app": "web"}),
		Backends: []networkpolicy.Service{
			service("web-stable", map[string]string{"app": "web", "version": "1"}), service("web-canary", map[string]string{"app": "web", "version": "2"}),
		},
		Access: networkpolicy.Access{
			Port: networkpolicy.Listener{Number: 15020, Name: "serin-status", Protocol: corev1.ProtocolTCP},
			Readers: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: namespaces["serin-system"]}, PodSelector: &metav1.LabelSelector{MatchLabels: manager.labels},
			}},
			APIServerPorts: []int32{6443},
		},
	}
}

func policy(t *testing.T, name, text string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	if where, what, found := strings.Cut(name, "/"); found {
		p.Namespace, p.Name = where, what
	}
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

const denyAll = `{podSelector: {}, policyTypes: [Ingress, Egress]}`

func TestWithoutPoliciesNoneIsMade(t *testing.T) {
	for name, policies := range map[string][]*networkingv1.NetworkPolicy{
		"none":                                  nil,
		"of other pods":                         {policy(t, "db", `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress, Egress], egress: [{to: [{podSelector: {matchLabels: {app: cache}}}]}]}`)},
		"of another namespace":                  {policy(t, "other/deny", denyAll)},
		"of clients of all pods":                {policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}]}`)},
		"of all addresses but those of the app": {policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/24]}}]}]}`)},
		"that let everyone in, and name some for one version": {
			policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{}]}`),
			policy(t, "first", `{podSelector: {matchLabels: {version: "1"}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]}`),
		},
		"of the app, about egress": {policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			made, refusals := networkpolicy.Derive(facts(policies, app...))
			if len(made)+len(refusals) > 0 {
				t.Errorf("made %v, refused %q", names(made), refusals)
			}
		})
	}
}

func names(policies []*networkingv1.NetworkPolicy) []string {
	var out []string
	for _, p := range policies {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

func TestWhatIsMade(t *testing.T) {
	web := policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{port: http, protocol: TCP}]}]}`)
	deny := policy(t, "deny", denyAll)
	clients := policy(t, "other/clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {team: shop}}, podSelector: {matchLabels: {app: web}}}]}]}`)
	for name, test := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     []string
	}{
		"the app is isolated": {
			[]*networkingv1.NetworkPolicy{web},
			[]string{
				`{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":18042}],"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]},{"ports":[{"protocol":"TCP","port":15020}]}],"policyTypes":["Ingress"]}`,
				`{"podSelector":{"matchLabels":{"app":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Ingress"]} web`,
			},
		},
		"everything is denied, and the app let in": {
			[]*networkingv1.NetworkPolicy{deny, web},
			[]string{
				`{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":18042}],"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]},{"ports":[{"protocol":"TCP","port":15020}],"from":[{"podSelector":{"matchLabels":{"app":"serin"}},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"serin-system"}}}]}],` +
					`"egress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"app":"web"}}}]},{"ports":[{"protocol":"TCP","port":6443}]}],"policyTypes":["Ingress","Egress"]}`,
				`{"podSelector":{"matchLabels":{"app":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Ingress"]} deny web`,
			},
		},
		"the isolated pods have more labels than the Service asks for": {
			[]*networkingv1.NetworkPolicy{
				policy(t, "front", `{podSelector: {matchLabels: {tier: front}, matchExpressions: [{key: app, operator: Exists}]}, policyTypes: [Ingress], ingress: [{}]}`),
				policy(t, "rest", `{podSelector: {matchLabels: {tier: front}}, policyTypes: [Ingress]}`),
			},
			nil, // everyone may reach them anyway
		},
		"only pods with more labels are isolated": {
			[]*networkingv1.NetworkPolicy{policy(t, "front", `{podSelector: {matchLabels: {tier: front}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`)},
			[]string{
				`{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":18042},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]},{"ports":[{"protocol":"TCP","port":15020}]}],"policyTypes":["Ingress"]}`,
				`{"podSelector":{"matchLabels":{"app":"web","tier":"front"}},"ingress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Ingress"]} front`,
			},
		},
		"clients of another namespace may send to the app only": {
			[]*networkingv1.NetworkPolicy{clients},
			[]string{`{"podSelector":{"matchLabels":{"app":"client"}},"egress":[{"ports":[{"protocol":"TCP","port":18042},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"shop"}}}]}],"policyTypes":["Egress"]} clients`},
		},
		"the isolated pods lack a label that others may have": {
			[]*networkingv1.NetworkPolicy{policy(t, "front", `{podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}, {key: app, operator: Exists}]}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`)},
			[]string{
				`{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":18042},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]},{"ports":[{"protocol":"TCP","port":15020}]}],"policyTypes":["Ingress"]}`,
				`{"podSelector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"NotIn","values":["back"]},{"key":"app","operator":"Exists"}]},"ingress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Ingress"]} front`,
			},
		},
		"a range of ports, with its ends": {
			[]*networkingv1.NetworkPolicy{policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 8080, endPort: 9000}]}]}`)},
			[]string{`{"podSelector":{"matchLabels":{"app":"client"}},"egress":[{"ports":[{"protocol":"TCP","port":18042},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Egress"]} clients`},
		},
		"no types are written": {
			[]*networkingv1.NetworkPolicy{
				policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]}`),
				policy(t, "web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{port: http}]}]}`),
			},
			[]string{
				`{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":18042}],"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]},{"ports":[{"protocol":"TCP","port":15020}]}],"policyTypes":["Ingress"]}`,
				`{"podSelector":{"matchLabels":{"app":"web"}},"ingress":[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"from":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Ingress"]} web`,
				`{"podSelector":{"matchLabels":{"app":"client"}},"egress":[{"ports":[{"protocol":"TCP","port":18042},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Egress"]} clients`,
			},
		},
		"clients may send to the addresses of pods": {
			[]*networkingv1.NetworkPolicy{policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/24}}], ports: [{port: 9000, protocol: TCP}]}]}`)},
			[]string{`{"podSelector":{"matchLabels":{"app":"client"}},"egress":[{"ports":[{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"serin.dev/proxy":"web"}}}]}],"policyTypes":["Egress"]} clients`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, refusals := networkpolicy.Derive(facts(test.policies, app...))
			if len(refusals) > 0 {
				t.Fatalf("refused: %q", refusals)
			}
			var got []string
			for _, p := range made {
				spec, err := yaml.Marshal(p.Spec)
				if err == nil {
					spec, err = yaml.YAMLToJSON(spec)
				}
				if err != nil {
					t.Fatal(err)
				}
				line := []string{string(spec)}
				for _, owner := range p.OwnerReferences {
					line = append(line, owner.Name)
				}
				got = append(got, strings.Join(line, " "))
			}
			var want []string
			for _, text := range test.want {
				spec, owners, _ := strings.Cut(text, "} ")
				if owners != "" {
					spec += "}"
				}
				canonical, err := yaml.YAMLToJSON([]byte(spec))
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, strings.TrimSpace(string(canonical)+" "+owners))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestWhoReachesThePortOfCountersAndConfirmations(t *testing.T) {
	web := policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`)
	deny := policy(t, "deny", denyAll)
	for name, test := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		restrict bool
		all      bool
	}{
		"no policy":                                {nil, false, true},
		"a policy selects the app alone":           {[]*networkingv1.NetworkPolicy{web}, false, true},
		"a policy selects the proxies too":         {[]*networkingv1.NetworkPolicy{deny, web}, false, false},
		"restricted without a policy":              {nil, true, false},
		"restricted, and a policy selects the app": {[]*networkingv1.NetworkPolicy{web}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(test.policies, app...)
			f.Access.Restrict = test.restrict
			made, refusals := networkpolicy.Derive(f)
			if len(refusals) > 0 {
				t.Fatalf("refused %q", refusals)
			}
			after := world{namespaces: namespaces, policies: append(slices.Clone(test.policies), made...)}
			for _, from := range append(slices.Clone(others), app...) {
				want := test.all || from.name == manager.name
				if got := after.takes(proxy, from, 15020); got != want {
					t.Errorf("%s/%s reaches the port: %v, want %v", from.namespace, from.name, got, want)
				}
			}
		})
	}
}

// TestARestrictedPortIsTheOnlyOneThatIsClosed asks every client, of both families, for listeners of
// both protocols, for the port at which a sidecar takes what is meant for them, and for ports of
// replies, in data planes that know ranges of ports and in those that don't.
func TestARestrictedPortIsTheOnlyOneThatIsClosed(t *testing.T) {
	f := facts(nil, app...)
	f.Access.Restrict = true
	f.Listeners = append(f.Listeners, networkpolicy.Listener{Number: 5353, Protocol: corev1.ProtocolUDP})
	for _, s := range append([]*networkpolicy.Service{&f.Root}, &f.Backends[0], &f.Backends[1]) {
		s.Targets = append(s.Targets, intstr.FromInt32(5353))
	}
	made, refusals := networkpolicy.Derive(f)
	if len(made) != 1 || len(refusals) > 0 {
		t.Fatalf("made %v, refused %q", names(made), refusals)
	}
	type port struct {
		protocol corev1.Protocol
		number   int32
	}
	listeners := []port{{corev1.ProtocolTCP, 18042}, {corev1.ProtocolTCP, 9000}, {corev1.ProtocolUDP, 5353}}
	rest := []port{
		{corev1.ProtocolTCP, 1},
		{corev1.ProtocolTCP, 4143},
		{corev1.ProtocolTCP, 15019},
		{corev1.ProtocolTCP, 15021},
		{corev1.ProtocolTCP, 40000},
		{corev1.ProtocolTCP, 65535},
		{corev1.ProtocolUDP, 1},
		{corev1.ProtocolUDP, 15020},
		{corev1.ProtocolUDP, 65535},
	}
	from := append(append(slices.Clone(others), app...), pod{name: "outside", address: "192.0.2.1"}, pod{name: "outside by IPv6", address: "2001:db8::1"})
	for _, ranges := range []bool{true, false} {
		after := world{namespaces: namespaces, policies: made, withoutRanges: !ranges}
		open := listeners
		if ranges {
			open = append(slices.Clone(listeners), rest...)
		}
		for _, client := range from {
			for _, p := range open {
				if !after.takesBy(p.protocol, proxy, client, p.number) {
					t.Errorf("ranges %v: %s does not reach port %d by %s", ranges, client.name, p.number, p.protocol)
				}
			}
			if got, want := after.takes(proxy, client, 15020), client.name == manager.name; got != want {
				t.Errorf("ranges %v: %s reaches the port of counters: %v, want %v", ranges, client.name, got, want)
			}
			if after.isolated(client, networkingv1.PolicyTypeIngress) || after.isolated(client, networkingv1.PolicyTypeEgress) {
				t.Errorf("%s is isolated", client.name)
			}
		}
		if after.isolated(proxy, networkingv1.PolicyTypeEgress) {
			t.Error("the proxies are isolated for what they send")
		}
	}
	f.Root.Pods, f.Backends[0].Pods, f.Backends[1].Pods = nil, nil, nil
	if without, refusals := networkpolicy.Derive(f); len(refusals) > 0 || !reflect.DeepEqual(without, made) {
		t.Errorf("without pods, which are not read for it, other policies are made: %v, %q", names(without), refusals)
	}
}

func TestWhatIsRefused(t *testing.T) {
	inside := policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`)
	for name, test := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     string
	}{
		"a policy opens the proxies and not the app": {
			[]*networkingv1.NetworkPolicy{inside, policy(t, "rest", `{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}, policyTypes: [Ingress], ingress: [{}]}`)},
			`NetworkPolicy "rest" selects the proxies, which have the label {"serin.dev/proxy":"web"}, and lets clients that may not reach the app reach them; have it select no pods with that label`,
		},
		"the versions have different clients": {
			[]*networkingv1.NetworkPolicy{inside, policy(t, "first", `{podSelector: {matchLabels: {version: "1"}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]}`)},
			`the NetworkPolicies of namespace "shop" let different clients reach pods of Service "web" and pods of Service "web", but behind proxies both have the same clients; label both so that the same policies select them`,
		},
		"clients may send to all but the app": {
			[]*networkingv1.NetworkPolicy{policy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}]}]}`)},
			`NetworkPolicy "clients" lets pods send to the proxies, which have the label {"serin.dev/proxy":"web"}, but not to the pods of Service "web"; exclude pods with that label from the peers of its egress rules`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, refusals := networkpolicy.Derive(facts(test.policies, app...))
			if len(made) > 0 || len(refusals) == 0 || refusals[0] != test.want {
				t.Errorf("made %v, refused %q, want %q", names(made), refusals, test.want)
			}
		})
	}
}

// TestAPolicyOfAnotherNamespaceDoesNotPreventASplit keeps one tenant from stopping another's releases.
func TestAPolicyOfAnotherNamespaceDoesNotPreventASplit(t *testing.T) {
	foreign := policy(t, "other/odd", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}]}]}`)
	if made, refusals := networkpolicy.Derive(facts([]*networkingv1.NetworkPolicy{foreign}, app...)); len(made)+len(refusals) > 0 {
		t.Errorf("made %v, refused %q", names(made), refusals)
	}
}

// TestProxiesBehindProxies has the backend of one split be the root Service of another.
func TestProxiesBehindProxies(t *testing.T) {
	deny := policy(t, "deny", denyAll)
	front := pod{"shop", "front", "10.0.9.8", map[string]string{traffic.LabelProxy: "front"}, proxy.ports}
	inner := facts([]*networkingv1.NetworkPolicy{deny}, app...)
	outer := inner
	outer.Split = "front"
	outer.Backends = slices.Clone(inner.Backends)
	outer.Backends[0] = inner.Root
	outer.Backends[0].Behind = "web"
	w := world{namespaces: namespaces, policies: []*networkingv1.NetworkPolicy{deny}}
	var ofInner, ofOuter []*networkingv1.NetworkPolicy
	for range 3 { // each sees what the other made
		var refusals []string
		inner.Policies, outer.Policies = append([]*networkingv1.NetworkPolicy{deny}, ofOuter...), append([]*networkingv1.NetworkPolicy{deny}, ofInner...)
		if ofInner, refusals = networkpolicy.Derive(inner); len(refusals) > 0 {
			t.Fatal(refusals)
		}
		if ofOuter, refusals = networkpolicy.Derive(outer); len(refusals) > 0 {
			t.Fatal(refusals)
		}
	}
	w = w.with(append(ofInner, ofOuter...))
	for _, p := range append(ofInner, ofOuter...) {
		for _, owner := range p.OwnerReferences {
			// What lets proxies in goes with the policy of users that keeps them out: two that own each other would stay.
			if len(p.Spec.Ingress) > 0 && owner.Name != "deny" {
				t.Errorf("%s is owned by %s", p.Name, owner.Name)
			}
		}
	}
	if !w.reaches(front, proxy, 18042) || !w.reaches(proxy, app[0], 8080) {
		t.Errorf("the outer proxies reach the inner ones: %v, these the app: %v", w.reaches(front, proxy, 18042), w.reaches(proxy, app[0], 8080))
	}
	if n := len(ofInner) + len(ofOuter); n > 6 {
		t.Errorf("%d policies: %v %v", n, names(ofInner), names(ofOuter))
	}
}

// draw makes random policies of users.
type draw struct{ *rand.Rand }

func pick[T any](d draw, of ...T) T { return of[d.IntN(len(of))] }

func (d draw) selector() *metav1.LabelSelector {
	return pick(d,
		&metav1.LabelSelector{}, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "client"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "version", Operator: metav1.LabelSelectorOpIn, Values: []string{"1", "2"}}}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"version": "1"}},
	)
}

func (d draw) peers() []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for range d.IntN(3) {
		p := networkingv1.NetworkPolicyPeer{}
		switch d.IntN(6) {
		case 0:
			p.IPBlock = &networkingv1.IPBlock{CIDR: pick(d, "10.0.0.0/24", "10.0.1.1/32", "0.0.0.0/0")}
		case 1:
			p.NamespaceSelector = pick(d, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "other"}})
		case 2:
			p.NamespaceSelector = pick(d, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}})
			p.PodSelector = d.selector()
		default:
			p.PodSelector = d.selector()
		}
		peers = append(peers, p)
	}
	return peers
}

func (d draw) ports() []networkingv1.NetworkPolicyPort {
	tcp := corev1.ProtocolTCP
	one := func(port intstr.IntOrString) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Port: &port, Protocol: &tcp}
	}
	long := one(intstr.FromInt32(8000))
	end := pick(d, int32(8999), 20000)
	long.EndPort = &end
	return pick(d, nil, nil, []networkingv1.NetworkPolicyPort{one(intstr.FromString("http"))}, []networkingv1.NetworkPolicyPort{one(intstr.FromInt32(8080))},
		[]networkingv1.NetworkPolicyPort{one(intstr.FromInt32(9000)), one(intstr.FromInt32(8080))}, []networkingv1.NetworkPolicyPort{long})
}

func (d draw) policies() (drawn []*networkingv1.NetworkPolicy) {
	for i := range d.IntN(5) {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: pick(d, "shop", "shop", "other"), UID: types.UID(strconv.Itoa(i))}}
		p.Spec.PodSelector = *d.selector()
		p.Spec.PolicyTypes = pick(d, []networkingv1.PolicyType{"Ingress"}, []networkingv1.PolicyType{"Egress"}, []networkingv1.PolicyType{"Ingress", "Egress"})
		for range d.IntN(3) {
			if slices.Contains(p.Spec.PolicyTypes, "Ingress") {
				p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: d.peers(), Ports: d.ports()})
			}
			if slices.Contains(p.Spec.PolicyTypes, "Egress") {
				p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: d.peers(), Ports: d.ports()})
			}
		}
		drawn = append(drawn, p)
	}
	return drawn
}

// TestWhoReachesTheAppReachesItThroughTheProxies draws policies of users, and compares who
// reaches whom before and after, by what the API says that policies mean.
func TestWhoReachesTheAppReachesItThroughTheProxies(t *testing.T) {
	var served, made int
	for seed := range uint64(1000) {
		d := draw{rand.New(rand.NewPCG(seed, 1))}
		before := world{namespaces: namespaces, policies: d.policies()}
		f := facts(before.policies, app...)
		f.Access.Restrict = seed%2 == 0
		policies, refusals := networkpolicy.Derive(f)
		if len(refusals) > 0 {
			continue
		}
		served++
		made += len(policies)
		f.Policies = append(slices.Clone(before.policies), policies...)
		if again, _ := networkpolicy.Derive(f); !reflect.DeepEqual(again, policies) {
			t.Fatalf("seed %d: beside what was made, %v is made; before %v", seed, names(again), names(policies))
		}
		after := before.with(policies)
		if faults := compare(before, after); len(faults) > 0 {
			described, _ := yaml.Marshal(before.policies)
			derived, _ := yaml.Marshal(policies)
			t.Fatalf("seed %d: %s\n--- users\n%s\n--- made\n%s", seed, strings.Join(faults, "\n"), described, derived)
		}
	}
	if served < 400 || made < 400 {
		t.Errorf("only %d draws were served, by %d policies: they show little", served, made)
	}
}

func compare(before, after world) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	all := append(slices.Clone(others), app...)
	for _, from := range all {
		for _, direction := range []networkingv1.PolicyType{"Ingress", "Egress"} {
			if before.isolated(from, direction) != after.isolated(from, direction) {
				fault("%s/%s is isolated for %s by what was made", from.namespace, from.name, direction)
			}
		}
		for _, to := range all {
			for _, number := range []int32{8080, 18042} {
				if before.reaches(from, to, number) != after.reaches(from, to, number) {
					fault("%s/%s reaches port %d of %s/%s: %v", from.namespace, from.name, number, to.namespace, to.name, after.reaches(from, to, number))
				}
			}
		}
		for _, way := range ways {
			direct := slices.ContainsFunc(app, func(p pod) bool { return before.reaches(from, p, way.app) })
			proxied := after.reaches(from, proxy, way.proxy)
			own := from.namespace != "shop" && before.isolated(from, "Egress") && before.sends(from, proxy, way.proxy)
			if direct != proxied && (direct || !own) {
				fault("%s/%s reaches port %d of the app: %v, through the proxies: %v", from.namespace, from.name, way.app, direct, proxied)
			}
		}
	}
	for _, p := range app {
		for _, way := range ways {
			if !after.reaches(proxy, p, way.app) {
				fault("the proxies don't reach port %d of %s", way.app, p.name)
			}
		}
	}
	if !after.takes(proxy, manager, 15020) || !after.sends(proxy, pod{namespace: "", address: "192.0.2.1"}, 6443) {
		fault("the proxies don't reach the API server, or the manager them")
	}
	return faults
}
