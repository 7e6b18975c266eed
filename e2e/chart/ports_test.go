// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestThePortsOfFiguresAreClosedByDefault renders what decides who reads the manager and the proxies:
// flags, the rights to ask whose a token is and to get the metrics, and how a Prometheus asks.
func TestThePortsOfFiguresAreClosedByDefault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		// secure is whether the manager asks for a token, and restricted the namespaces whose proxies
		// are read by those alone who have to.
		secure     bool
		restricted string
		// role is the ClusterRole of those who may get the metrics.
		role string
	}{
		"by default":                   {"", true, "*", "serin-metrics-reader"},
		"of a tenant":                  {"watchNamespaces: [shop]", true, "*", "serin-system-serin-metrics-reader"},
		"without objects of a cluster": {"watchNamespaces: [shop]\nclusterObjects: {enabled: false}", false, "*", ""},
		"asked for":                    {"monitoring: {secure: {enabled: true}}", true, "*", "serin-metrics-reader"},
		"not wanted":                   {"monitoring: {secure: {enabled: false}}", false, "*", ""},
		"in some namespaces":           {"networkPolicy: {proxies: {namespaces: [shop]}}", true, "shop", "serin-metrics-reader"},
		"in none":                      {"networkPolicy: {proxies: {enabled: false}}", true, "", "serin-metrics-reader"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := render(t, test.values)
			if err != nil {
				t.Fatal(err)
			}
			manager := objects(t, text, "Deployment")["serin-manager"]
			has := func(what, where, part string, want bool) {
				t.Helper()
				if got := part != "" && strings.Contains(where, part); got != want {
					t.Errorf("%s: %v, want %v:\n%s", what, got, want, where)
				}
			}
			has("the manager asks for a token", manager, "- --metrics-secure\n", test.secure)
			has("the port of proxies is restricted", manager, "- --restrict-proxy-readers=", test.restricted != "")
			has("in these namespaces", manager, "- --restrict-proxy-readers="+test.restricted+"\n", test.restricted != "")
			bindings := objects(t, text, "ClusterRoleBinding")
			has("the manager may ask whose a token is", bindings["serin-delegator"]+bindings["serin-system-serin-delegator"], "name: system:auth-delegator", test.secure)
			roles := objects(t, text, "ClusterRole")
			has("a role may get the metrics", roles[test.role], "rules:\n  - nonResourceURLs: [/metrics]\n    verbs: [get]", test.secure)
			has("any role may", strings.Join(slices.Collect(maps.Values(roles)), "\n"), "nonResourceURLs", test.secure)
			if strings.HasPrefix(test.values, "networkPolicy") || strings.HasPrefix(test.values, "monitoring") {
				return // the values of a Prometheus would be the same ones
			}
			scrapes, err := render(t, test.values+"\nmonitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}\n"+scraped, operatorKinds...)
			if err != nil {
				t.Fatal(err)
			}
			has("a Prometheus asks with a token", objects(t, scrapes, "PodMonitor")["serin-manager"], "scheme: https", test.secure)
		})
	}
}

// TestTheReadersOfProxiesAreTheOperatorsPods compares who may read the proxies with the labels of the pods
// that have to, and of those that don't, in an installation of the cluster and in one of a tenant.
func TestTheReadersOfProxiesAreTheOperatorsPods(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", "watchNamespaces: [shop]\n", "podLabels: {team: a}\nmetrics: {podLabels: {team: b}}\n"} {
		text, err := renderIn(t, "team-a", values+"dashboard: {enabled: true, "+pageURL+"}\n"+scraped)
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]corev1.PodTemplateSpec{}
		for name, object := range objects(t, text, "Deployment") {
			var d appsv1.Deployment
			if err := yaml.UnmarshalStrict([]byte(object), &d); err != nil {
				t.Fatal(err)
			}
			pods[name] = d.Spec.Template
		}
		var readers []networkingv1.NetworkPolicyPeer
		for _, arg := range pods["serin-manager"].Spec.Containers[0].Args {
			if list, found := strings.CutPrefix(arg, "--proxy-readers="); found {
				if err := yaml.UnmarshalStrict([]byte(list), &readers); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(readers) != 2 || readers[1].PodSelector.MatchLabels["app"] != "prometheus" {
			t.Fatalf("%q: the readers are %+v", values, readers)
		}
		if where := readers[0].NamespaceSelector.MatchLabels; len(where) != 1 || where[corev1.LabelMetadataName] != "team-a" {
			t.Errorf("%q: they are in %v", values, where)
		}
		selector, err := metav1.LabelSelectorAsSelector(readers[0].PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		for name, reads := range map[string]bool{"serin-manager": true, "serin-metrics": true, "serin-dashboard": false} {
			if got := selector.Matches(labels.Set(pods[name].Labels)); got != reads || pods[name].Labels == nil {
				t.Errorf("%q: the pods of %s with the labels %v read proxies: %v, want %v", values, name, pods[name].Labels, got, reads)
			}
		}
	}
}
