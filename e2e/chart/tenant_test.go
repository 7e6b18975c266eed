// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const mutatingPolicies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// tenantObject is the part of an object that says whom it concerns.
type tenantObject struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct{ Name, Namespace string } `json:"metadata"`
	Rules           []rbacv1.PolicyRule              `json:"rules"`
	RoleRef         rbacv1.RoleRef                   `json:"roleRef"`
	Spec            struct {
		PolicyName     string `json:"policyName"`
		MatchResources struct {
			NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		} `json:"matchResources"`
	} `json:"spec"`
}

func (o tenantObject) key() string {
	return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// tenant renders the release of a tenant.
func tenant(t *testing.T, namespace, values string) []tenantObject {
	t.Helper()
	text, err := renderIn(t, namespace, values, append([]string{mutatingPolicies}, operatorKinds...)...)
	if err != nil {
		t.Fatal(err)
	}
	var all []tenantObject
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o tenantObject
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if o.Kind != "" {
			all = append(all, o)
		}
	}
	return all
}

func keys(objects []tenantObject) (list []string) {
	for _, o := range objects {
		list = append(list, o.key())
	}
	return list
}

func TestATenantNeedsRightsInTheirNamespacesOnly(t *testing.T) {
	t.Parallel()
	own := []string{"team-a", "shop"}
	for _, o := range tenant(t, "team-a", "watchNamespaces: [team-a, shop]\nclusterObjects: {enabled: false}\nmonitoring: {podMonitor: {enabled: true}}\n"+scraped) {
		if !slices.Contains(own, o.Metadata.Namespace) {
			t.Errorf("%s is in none of %v", o.key(), own)
		}
		if o.RoleRef.Kind != "" && o.RoleRef.Kind != "Role" {
			t.Errorf("%s gives the rights of a %s", o.key(), o.RoleRef.Kind)
		}
	}
}

func TestTheManagerOfATenantReadsWhatBelongsToNoNamespaceAndElseItsOwn(t *testing.T) {
	t.Parallel()
	const values = "{watchNamespaces: [team-a, shop], metrics: {enabled: false}, configuration: {secretNamespaces: [shop]}}"
	bound := map[string]bool{}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range tenant(t, "team-a", values) {
		switch o.Kind {
		case "ClusterRoleBinding":
			bound[o.RoleRef.Name] = true
		case "ClusterRole":
			rules[o.Metadata.Name] = o.Rules
		case "Role", "RoleBinding":
			if !slices.Contains([]string{"team-a", "shop", "default"}, o.Metadata.Namespace) {
				t.Errorf("%s is in another namespace", o.key())
			}
			if o.Metadata.Namespace == "default" && o.Metadata.Name != "team-a-serin-apiserver" {
				t.Errorf("%s is in default", o.key())
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"team-a-serin-cluster": true, "team-a-serin-admission": true, "system:auth-delegator": true}, bound); diff != "" {
		t.Errorf("bound in the whole cluster (-want +got):\n%s", diff)
	}
	read := []string{}
	for _, rule := range append(rules["team-a-serin-cluster"], rules["team-a-serin-admission"]...) {
		if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" {
			t.Errorf("%v (-want +got):\n%s", rule.Resources, diff)
		}
		read = append(read, rule.Resources...)
	}
	want := []string{"freezes", "clusteranalysistemplates", "clustermetricproviders", "namespaces", "nodes", "gatewayclasses", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read in the whole cluster (-want +got):\n%s", diff)
	}
}

func TestAPolicyOfATenantHoldsInTheirNamespaces(t *testing.T) {
	t.Parallel()
	bindings := 0
	for _, o := range tenant(t, "team-a", "watchNamespaces: [team-a, shop]") {
		if o.Metadata.Namespace == "" && o.Kind != "CustomResourceDefinition" && o.Kind != "APIService" && !strings.HasPrefix(o.Metadata.Name, "team-a-serin-") {
			t.Errorf("%s may be another tenant's too", o.key())
		}
		if !strings.HasSuffix(o.Kind, "PolicyBinding") {
			continue
		}
		bindings++
		want := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"team-a", "shop"}},
		}}
		if diff := cmp.Diff(want, o.Spec.MatchResources.NamespaceSelector); diff != "" || o.Spec.PolicyName != o.Metadata.Name {
			t.Errorf("%s of %s (-want +got):\n%s", o.key(), o.Spec.PolicyName, diff)
		}
	}
	if bindings != 9 {
		t.Errorf("%d bindings, want 9", bindings)
	}
}

func TestReleasesOfTwoTenantsHaveNoObjectInCommon(t *testing.T) {
	t.Parallel()
	const values = "{watchNamespaces: [%], metrics: {enabled: false}, crds: {serin: false, smi: false}}"
	a := keys(tenant(t, "team-a", strings.Replace(values, "%", "team-a, shop", 1)))
	b := keys(tenant(t, "team-b", strings.Replace(values, "%", "team-b, bank", 1)))
	for _, key := range a {
		if slices.Contains(b, key) {
			t.Errorf("both have %s", key)
		}
	}
}

// Helm installs no object that another release has, whatever the releases are called.
func TestHelmRefusesTheSecondReleaseForANamespace(t *testing.T) {
	t.Parallel()
	const values = "{watchNamespaces: [shop], clusterObjects: {enabled: false}}"
	for _, namespace := range []string{"team-a", "team-b"} {
		if all := keys(tenant(t, namespace, values)); !slices.Contains(all, "Role shop/serin-manager") {
			t.Errorf("the release of %s has no object that each release for the namespace has: %v", namespace, all)
		}
	}
}
