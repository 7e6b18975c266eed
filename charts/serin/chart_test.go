// SPDX-License-Identifier: Apache-2.0

// Package chart_test checks the chart's files without rendering it.
package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// The chart can only read its own files, so it has a copy of each definition of a
// kind that the API server stores. TrafficMetrics are served, not stored.
func TestDefinitionsAreTheGeneratedOnes(t *testing.T) {
	generated, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(generated) == 0 {
		t.Fatalf("no generated definitions: %v", err)
	}
	var names []string
	for _, file := range generated {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "metrics.smi-spec.io_") {
			continue
		}
		names = append(names, name)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join("files", "crds", name)
		golden.Check(t, copied, string(want))
	}
	copies, err := filepath.Glob("files/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range copies {
		if !slices.Contains(names, filepath.Base(file)) {
			t.Errorf("%s is not generated any more; delete it", file)
		}
	}
}

func TestTheLengthOfAWindowIsTheOperatorsOwn(t *testing.T) {
	text, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Window metav1.Duration }
	if err := yaml.Unmarshal(text, &values); err != nil || values.Window.Duration != analysis.WindowLength {
		t.Errorf("the chart sets %s (%v), the default of the operator is %s", values.Window.Duration, err, analysis.WindowLength)
	}
}

// rules of a role file, whose rules hold no template actions.
func rules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("templates", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		_, list, found := strings.Cut(document, "\nrules:\n")
		if !found {
			continue
		}
		list, _, _ = strings.Cut(list, "\n{{- end")
		var role struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := yaml.UnmarshalStrict([]byte("rules:\n"+list), &role); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, role.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", file)
	}
	return all
}

func TestRolesHaveNoWildcardsAndNoSecrets(t *testing.T) {
	for _, file := range []string{"clusterrole.yaml", "clusterobjectrole.yaml", "freezerole.yaml", "apiserverrole.yaml", "proxyrole.yaml", "role.yaml", "userroles.yaml", "configurationrole.yaml", "metricsrole.yaml"} {
		for _, rule := range rules(t, file) {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if strings.Contains(word, "*") || word == "secrets" || word == "escalate" || word == "bind" || word == "impersonate" {
					t.Errorf("%s: %q in %+v", file, word, rule)
				}
			}
		}
	}
}

// Everything else is patched or applied, with preconditions: a right that no code uses is only
// of use to who steals the account.
func TestTheManagerUpdatesOnlyWhatItsCodeUpdates(t *testing.T) {
	var updated []string
	for _, rule := range rules(t, "clusterrole.yaml") {
		if slices.Contains(rule.Verbs, "update") {
			updated = append(updated, rule.Resources...)
		}
		if slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasSuffix(resource, "/finalizers") }) {
			t.Errorf("nothing is owned in a way that blocks its owner's deletion: %v", rule.Resources)
		}
	}
	want := []string{"rollouts/status", "services", "endpointslices"}
	if diff := cmp.Diff(want, updated); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// secretRole is rendered only for namespaces that the values name.
const secretRole = "secretrole.yaml"

func TestSecretsAreReadOnlyInNamespacesThatTheValuesName(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("templates", secretRole))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "ClusterRole") || !strings.Contains(string(text), "range .Values.configuration.secretNamespaces") {
		t.Errorf("%s gives rights beyond the namespaces that are named", secretRole)
	}
	files, err := filepath.Glob("templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == secretRole {
			continue
		}
		for rest, found := string(text), true; found; {
			if _, rest, found = strings.Cut(rest, "resources: [secrets"); found && !slices.ContainsFunc(oneSecret, func(end string) bool { return strings.HasPrefix(rest, end) }) {
				t.Errorf("%s gives rights to Secrets other than those of the operator's own certificates", file)
			}
		}
	}
}

// oneSecret is how rules end that are about one Secret only, or about those that a value
// names.
var oneSecret = []string{`]
    resourceNames: [{{ include "serin.name" . }}-metrics]
    verbs: [get, patch]
`, `]
    resourceNames: [{{ include "serin.name" . }}-webhooks]
    verbs: [get, patch]
`, `]
    resourceNames: {{ toJson . }}
    verbs: [get]
`}

// canaryRole is the only one that lets the manager impersonate.
const canaryRole = "canaryrole.yaml"

func TestTheManagerActsOnlyAsTheServiceAccountForCanaryReleases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("templates", canaryRole))
	if err != nil {
		t.Fatal(err)
	}
	const one = `resources: [serviceaccounts]
    resourceNames: [{{ .Values.canaryReleases.serviceAccount }}]
    verbs: [impersonate]
`
	if rest := strings.Replace(string(text), one, "", 1); strings.Contains(rest, "impersonate") || rest == string(text) {
		t.Errorf("%s lets the manager act as others than the one ServiceAccount", canaryRole)
	}
	for _, word := range []string{"secrets", "'*'", "[*", "escalate", "bind]"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%s: %q", canaryRole, word)
		}
	}
	values, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(values), "serviceAccount: serin-canary") {
		t.Error("values.yaml names another ServiceAccount than the pages do")
	}
}

func TestEveryRuleOfTheManagerSaysWhatItIsFor(t *testing.T) {
	for _, file := range []string{"clusterrole.yaml", "clusterobjectrole.yaml", "freezerole.yaml", "apiserverrole.yaml", "role.yaml", "configurationrole.yaml", "metricsrole.yaml", "metricscertificate.yaml", "admissionrole.yaml", "webhooks.yaml", canaryRole, secretRole} {
		text, err := os.ReadFile(filepath.Join("templates", file))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "  - apiGroups:") && !strings.HasPrefix(lines[i-1], "  # ") {
				t.Errorf("%s:%d: no reason above the rule", file, i+1)
			}
		}
	}
}

func TestTheMetricsServersReadAndTellTheirAPIServiceNothingMore(t *testing.T) {
	for _, rule := range rules(t, "metricsrole.yaml") {
		own := cmp.Equal(rule.ResourceNames, []string{"v1alpha1.metrics.smi-spec.io"}) && cmp.Equal(rule.Verbs, []string{"get", "patch"})
		if !own && !cmp.Equal(rule.Verbs, []string{"list", "watch"}) {
			t.Errorf("too much: %+v", rule)
		}
	}
}

// View gives every resource of the API and its edges.
func TestWithViewOnANamespaceItsTrafficMetricsCanBeRead(t *testing.T) {
	given := map[string]bool{}
	for _, rule := range rules(t, "userroles.yaml") {
		if slices.Contains(rule.APIGroups, "metrics.smi-spec.io") {
			if !cmp.Equal(rule.Verbs, []string{"get", "list"}) {
				t.Errorf("verbs %v", rule.Verbs)
			}
			for _, resource := range rule.Resources {
				given[resource] = true
			}
		}
	}
	for _, kind := range observe.Kinds {
		if !given[kind.Resource] || !given[kind.Resource+"/edges"] {
			t.Errorf("not %s with its edges", kind.Resource)
		}
	}
}

// The API server lets no user bind to a role that gives more than the user has.
func TestTheManagerHasEveryRightThatItGivesToProxies(t *testing.T) {
	manager := rules(t, "clusterrole.yaml")
	for _, rule := range rules(t, "proxyrole.yaml") {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if !slices.ContainsFunc(manager, func(r rbacv1.PolicyRule) bool {
						return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
					}) {
						t.Errorf("the manager lacks %s %s.%s", verb, resource, group)
					}
				}
			}
		}
	}
}

// What belongs to no namespace is read and not written, but for the status of Freezes.
func TestTheManagerOnlyReadsWhatBelongsToNoNamespace(t *testing.T) {
	for _, rule := range rules(t, "clusterobjectrole.yaml") {
		if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			t.Errorf("too much: %+v", rule)
		}
	}
	for _, rule := range rules(t, "clusterrole.yaml") {
		for _, resource := range rule.Resources {
			if slices.Contains([]string{"freezes", "freezes/status", "clusteranalysistemplates", "clustermetricproviders", "namespaces", "nodes", "gatewayclasses", "mutatingadmissionpolicies"}, resource) {
				t.Errorf("no Role can give %s", resource)
			}
		}
	}
}

func TestProxiesOnlyRead(t *testing.T) {
	var readable []string
	for _, rule := range rules(t, "proxyrole.yaml") {
		if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			t.Errorf("proxies may %v %v", rule.Verbs, rule.Resources)
		}
		readable = append(readable, rule.Resources...)
	}
	if diff := cmp.Diff([]string{"trafficsplits", "httproutegroups", "services"}, readable); diff != "" {
		t.Errorf("what proxies may read (-want +got):\n%s", diff)
	}
}

// Only what gives rights to all proxies alike may be bound.
func TestTheManagerMakesNoRoles(t *testing.T) {
	for _, rule := range rules(t, "clusterrole.yaml") {
		for _, resource := range rule.Resources {
			if resource == "roles" || resource == "clusterroles" {
				t.Errorf("the manager may %v %s", rule.Verbs, resource)
			}
		}
	}
}
