// SPDX-License-Identifier: Apache-2.0

package canaryrights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account is the ServiceAccount that Helm is called as.
type Account struct{ Namespace, Name string }

// resource is a kind of objects where they are, with their names.
type resource struct {
	namespace, group, plural string
}

// Compute returns the ServiceAccount, and the Roles and bindings with the rights that Helm
// needs to upgrade a release to these objects, and Serin to copy the ConfigMaps and Secrets
// that the canary's pods read. Warnings say what a Role can't give by itself. Objects without
// a namespace belong to that of the account.
func Compute(objects []*unstructured.Unstructured, account Account, mapper meta.RESTMapper) (rights []client.Object, warnings []string, err error) {
	names := map[resource][]string{}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s: find its resource: %w", gvk.Kind, o.GetName(), err)
		}
		r := resource{namespaceOf(o, account, mapping), mapping.Resource.Group, mapping.Resource.Resource}
		names[r] = append(names[r], o.GetName())
		if gvk.Group == rbacv1.GroupName {
			warnings = append(warnings, fmt.Sprintf("%s %s: the API server lets an account give only what it has itself; add the rules that it gives to the account's Role", gvk.Kind, o.GetName()))
		}
	}
	rights = []client.Object{&corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}}
	rules := map[string][]rbacv1.PolicyRule{account.Namespace: records()}
	for _, r := range slices.SortedFunc(maps.Keys(names), compare) {
		rules[r.namespace] = append(rules[r.namespace], r.rules(account, names[r])...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		rights = append(rights, bound(account, namespace, rules[namespace])...)
	}
	return rights, warnings, nil
}

// namespaceOf is where an object is; "" for the whole cluster.
func namespaceOf(o *unstructured.Unstructured, account Account, mapping *meta.RESTMapping) string {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return ""
	}
	return cmp.Or(o.GetNamespace(), account.Namespace)
}

func compare(a, b resource) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.group, b.group), cmp.Compare(a.plural, b.plural))
}

// records are the rights without which no release is tried: Helm keeps its records in Secrets,
// the archive of a chart is in a ConfigMap, copies of what the canary's pods read are in both, and
// a claim says whether more pods can mount it.
func records() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}},
	}
}

// rules are what Helm does to the objects of a resource. The names of objects that are not in
// the account's namespace are fixed, since a right over all of them reaches other tenants. None
// is created: RBAC knows no names then, and who may create a webhook of any name sees the
// requests of the whole cluster. Those of a release that is installed exist.
func (r resource) rules(account Account, names []string) []rbacv1.PolicyRule {
	switch {
	case r.namespace != account.Namespace:
		slices.Sort(names)
		return []rbacv1.PolicyRule{
			{APIGroups: []string{r.group}, Resources: []string{r.plural}, ResourceNames: slices.Compact(names), Verbs: []string{"get", "patch", "update", "delete"}},
		}
	case r.group == "" && (r.plural == "configmaps" || r.plural == "secrets"):
		return nil // among the records
	default:
		return []rbacv1.PolicyRule{
			{APIGroups: []string{r.group}, Resources: []string{r.plural}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		}
	}
}

// bound is a Role with its binding, or for the whole cluster the kinds for that.
func bound(account Account, namespace string, rules []rbacv1.PolicyRule) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	if namespace == "" {
		name := metav1.ObjectMeta{Name: account.Namespace + "-" + account.Name}
		return []client.Object{
			&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRole"), ObjectMeta: name, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRoleBinding"), ObjectMeta: name, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			},
		}
	}
	name := metav1.ObjectMeta{Namespace: namespace, Name: account.Name}
	return []client.Object{
		&rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "Role"), ObjectMeta: name, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: name, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		},
	}
}

func typeMeta(gv schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gv.String(), Kind: kind}
}
