// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// objectLabels are those of every object of a split's proxy. The first says whose
// it is.
//
// There is no owner reference on purpose: when an owner is deleted in the
// foreground, the garbage collector takes what it owns before the owner's
// finalizers are done, and so the proxies out of the path while clients are on it.
// The controller deletes the objects, also those of a split that went without it.
func objectLabels(split *splitv1.TrafficSplit) map[string]string {
	return map[string]string{
		traffic.LabelProxy:             split.Name,
		"app.kubernetes.io/managed-by": "serin",
		"app.kubernetes.io/component":  "proxy",
	}
}

// MakeServiceAccount builds the identity of a split's proxies.
func MakeServiceAccount(split *splitv1.TrafficSplit) *coreac.ServiceAccountApplyConfiguration {
	return coreac.ServiceAccount(traffic.ProxyName(split.Name), split.Namespace).
		WithLabels(objectLabels(split)).
		WithAutomountServiceAccountToken(false) // the pod asks for its token itself
}

// MakeRole builds what a split's proxies may do: read their split, the Services and,
// when the split is limited to some requests, the HTTPRouteGroups. They write nothing.
func MakeRole(split *splitv1.TrafficSplit) *rbacac.RoleApplyConfiguration {
	role := rbacac.Role(traffic.ProxyName(split.Name), split.Namespace).
		WithLabels(objectLabels(split)).
		WithRules(
			rbacac.PolicyRule().WithAPIGroups(splitv1.GroupVersion.Group).WithResources("trafficsplits").
				WithResourceNames(split.Name).WithVerbs("get", "list", "watch"),
			rbacac.PolicyRule().WithAPIGroups(corev1.GroupName).WithResources("services").
				WithVerbs("get", "list", "watch"),
		)
	if len(split.Spec.Matches) > 0 {
		role.WithRules(rbacac.PolicyRule().WithAPIGroups(specsv1.GroupVersion.Group).WithResources("httproutegroups").
			WithVerbs("get", "list", "watch"))
	}
	return role
}

// MakeRoleBinding binds the Role to the ServiceAccount.
func MakeRoleBinding(split *splitv1.TrafficSplit) *rbacac.RoleBindingApplyConfiguration {
	name := traffic.ProxyName(split.Name)
	return rbacac.RoleBinding(name, split.Namespace).
		WithLabels(objectLabels(split)).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
		WithSubjects(rbacac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(split.Namespace))
}

// MakePodDisruptionBudget builds the bound on how many proxies an eviction may
// take at once. Proxies that are not ready may always be evicted.
func MakePodDisruptionBudget(split *splitv1.TrafficSplit) *policyac.PodDisruptionBudgetApplyConfiguration {
	return policyac.PodDisruptionBudget(traffic.ProxyName(split.Name), split.Namespace).
		WithLabels(objectLabels(split)).
		WithSpec(policyac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(selector(split)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow))
}

// selector of the proxies' pods. It does not hold the root Service's labels: they
// may change, and a Deployment's selector can't.
func selector(split *splitv1.TrafficSplit) *metaac.LabelSelectorApplyConfiguration {
	return metaac.LabelSelector().WithMatchLabels(map[string]string{traffic.LabelProxy: split.Name})
}
