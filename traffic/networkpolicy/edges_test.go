// SPDX-License-Identifier: Apache-2.0

package networkpolicy_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic/networkpolicy"
)

func TestTheSameClientsInAnotherOrderAreTheSame(t *testing.T) {
	from := func(version, peers string) *networkingv1.NetworkPolicy {
		return policy(t, "version-"+version, `{podSelector: {matchLabels: {version: "`+version+`"}}, policyTypes: [Ingress], ingress: [{from: [`+peers+`]}]}`)
	}
	const client, db = `{podSelector: {matchLabels: {app: client}}}`, `{podSelector: {matchLabels: {app: db}}}`
	policies := []*networkingv1.NetworkPolicy{from("1", client+", "+db+", "+client), from("2", db+", "+client)}
	if made, refusals := networkpolicy.Derive(facts(policies, app...)); len(made) == 0 || len(refusals) > 0 {
		t.Errorf("made %v, refused %q", names(made), refusals)
	}
}

// TestWithoutPodsTheProxiesAreGuardedAsWithThem has the Service name a port that no pod has yet.
func TestWithoutPodsTheProxiesAreGuardedAsWithThem(t *testing.T) {
	web := policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{port: http, protocol: TCP}]}]}`)
	with, _ := networkpolicy.Derive(facts([]*networkingv1.NetworkPolicy{web}, app...))
	without, refusals := networkpolicy.Derive(facts([]*networkingv1.NetworkPolicy{web}))
	if len(with) == 0 || len(without) != 1 || len(refusals) > 0 || !reflect.DeepEqual(with[0], without[0]) {
		t.Errorf("made %v with pods, and %v without; refused %q", with, without, refusals)
	}
}

// TestIsolatedProxiesOfAnOpenAppTakeNothingButItsTraffic has a policy that isolates every pod, one that
// lets everyone reach the app, and one that lets some reach all but the app.
func TestIsolatedProxiesOfAnOpenAppTakeNothingButItsTraffic(t *testing.T) {
	policies := []*networkingv1.NetworkPolicy{
		policy(t, "deny", `{podSelector: {}, policyTypes: [Ingress]}`),
		policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{}]}`),
		policy(t, "rest", `{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: db}}}], ports: [{port: 18042}]}]}`),
	}
	made, refusals := networkpolicy.Derive(facts(policies, app...))
	if len(refusals) > 0 {
		t.Fatal(refusals)
	}
	after := world{namespaces: namespaces, policies: append(policies, made...)}
	for number, want := range map[int32]bool{18042: true, 9000: true, 40000: false} {
		if got := after.takes(proxy, others[0], number); got != want {
			t.Errorf("a client reaches port %d: %v, want %v", number, got, want)
		}
	}
}

func TestAPortIsOneOfAProtocol(t *testing.T) {
	f := facts([]*networkingv1.NetworkPolicy{
		policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{protocol: UDP}]}]}`),
	}, app...)
	f.Listeners = append(f.Listeners, networkpolicy.Listener{Number: 5353, Protocol: corev1.ProtocolUDP})
	for _, s := range []*networkpolicy.Service{&f.Root, &f.Backends[0], &f.Backends[1]} {
		s.Targets = append(s.Targets, intstr.FromInt32(5353))
	}
	made, refusals := networkpolicy.Derive(f)
	if len(refusals) > 0 {
		t.Fatal(refusals)
	}
	after := world{namespaces: namespaces, policies: made}
	if client := others[0]; !after.takesBy(corev1.ProtocolUDP, proxy, client, 5353) || after.takes(proxy, client, 9000) {
		t.Errorf("the client, who may send datagrams, reaches other ports, or not that one: %v", made)
	}
}

// TestBackendsOfOtherKinds has backends that the selector of the root Service does not find, that
// have endpoints which a user writes, that lack a port, or all.
func TestBackendsOfOtherKinds(t *testing.T) {
	deny := policy(t, "deny", denyAll)
	web := policy(t, "web", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{ports: [{port: http}]}]}`)
	const api = `{"ports":[{"protocol":"TCP","port":6443}]}`
	for name, test := range map[string]struct {
		change func(*networkpolicy.Facts)
		want   string
	}{
		"of other pods": {
			func(f *networkpolicy.Facts) {
				f.Backends = []networkpolicy.Service{{Name: "other", Selector: map[string]string{"app": "other"}, Targets: f.Root.Targets}}
			},
			`[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"app":"other"}}}]},` + api + `]`,
		},
		"behind a root Service without a selector": {
			func(f *networkpolicy.Facts) { f.Root.Selector, f.Backends = nil, f.Backends[:1] },
			`[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"app":"web","version":"1"}}}]},` + api + `]`,
		},
		"behind other proxies": {
			func(f *networkpolicy.Facts) { f.Backends, f.Backends[0].Behind = f.Backends[:1], "inner" },
			`[{"ports":[{"protocol":"TCP","port":"http"},{"protocol":"TCP","port":9000}],"to":[{"podSelector":{"matchLabels":{"app":"web"}}},{"podSelector":{"matchLabels":{"serin.dev/proxy":"inner"}}}]},` + api + `]`,
		},
		"without a selector": {
			func(f *networkpolicy.Facts) {
				f.Backends = []networkpolicy.Service{{Name: "outside", Targets: []intstr.IntOrString{intstr.FromInt32(80), {}}}}
			},
			`[{"ports":[{"protocol":"TCP","port":80}]},` + api + `]`,
		},
		"without a port": {
			func(f *networkpolicy.Facts) {
				f.Backends = []networkpolicy.Service{{Name: "other", Selector: map[string]string{"app": "other"}, Targets: make([]intstr.IntOrString, 2)}}
			},
			`[` + api + `]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts([]*networkingv1.NetworkPolicy{deny, web}, app...)
			test.change(&f)
			made, refusals := networkpolicy.Derive(f)
			if len(made) == 0 || len(refusals) > 0 {
				t.Fatalf("made %v, refused %q", names(made), refusals)
			}
			got, err := yaml.Marshal(made[0].Spec.Egress)
			if err == nil {
				got, err = yaml.YAMLToJSON(got)
			}
			want, wrong := yaml.YAMLToJSON([]byte(test.want))
			if err != nil || wrong != nil || string(got) != string(want) {
				t.Errorf("got %s, want %s; %v, %v", got, want, err, wrong)
			}
		})
	}
	// The pods have no second port, and everyone reaches the first one.
	f := facts([]*networkingv1.NetworkPolicy{web}, app...)
	for _, s := range []*networkpolicy.Service{&f.Root, &f.Backends[0], &f.Backends[1]} {
		s.Targets = []intstr.IntOrString{intstr.FromString("http"), {}}
	}
	made, refusals := networkpolicy.Derive(f)
	if len(refusals) > 0 || slices.ContainsFunc(made, func(p *networkingv1.NetworkPolicy) bool { return p.Name != "serin-proxy-web" }) {
		t.Errorf("made %v, refused %q", names(made), refusals)
	}
}

func TestAPolicyThatLetsTheSameClientsReachTheAppAndTheProxiesIsNotRefused(t *testing.T) {
	all := policy(t, "all", `{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`)
	if made, refusals := networkpolicy.Derive(facts([]*networkingv1.NetworkPolicy{all}, app...)); len(made) == 0 || len(refusals) > 0 {
		t.Errorf("made %v, refused %q", names(made), refusals)
	}
}
