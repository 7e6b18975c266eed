// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"

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

// sharedLabels are those of what the proxies of all splits of a namespace share.
func sharedLabels() map[string]string {
	return map[string]string{
		traffic.LabelProxy:             "",
		"app.kubernetes.io/managed-by": "serin",
		"app.kubernetes.io/component":  "proxy",
	}
}

// MakeServiceAccount builds the identity of all proxies of a namespace.
func MakeServiceAccount(target traffic.Target, _ Options) (*coreac.ServiceAccountApplyConfiguration, error) {
	return coreac.ServiceAccount(traffic.SharedProxyName, target.Split.Namespace).
		WithLabels(sharedLabels()).
		WithAutomountServiceAccountToken(false), nil // the pod asks for its token itself
}

// roleRef is what the identity of proxies is bound to.
func (o Options) roleRef() rbacv1.RoleRef {
	if o.Role != "" {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: o.Role}
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.ClusterRole}
}

// MakeRoleBinding binds the ServiceAccount to the role of proxies, in the namespace.
func MakeRoleBinding(target traffic.Target, opts Options) (*rbacac.RoleBindingApplyConfiguration, error) {
	ref := opts.roleRef()
	return rbacac.RoleBinding(traffic.SharedProxyName, target.Split.Namespace).
		WithLabels(sharedLabels()).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(ref.APIGroup).WithKind(ref.Kind).WithName(ref.Name)).
		WithSubjects(rbacac.Subject().WithKind(rbacv1.ServiceAccountKind).
			WithName(traffic.SharedProxyName).WithNamespace(target.Split.Namespace)), nil
}

// MakePodDisruptionBudget builds the bound on how many proxies an eviction may
// take at once. Proxies that are not ready may always be evicted.
func MakePodDisruptionBudget(target traffic.Target, _ Options) (*policyac.PodDisruptionBudgetApplyConfiguration, error) {
	split := target.Split
	return policyac.PodDisruptionBudget(traffic.ProxyName(split.Name), split.Namespace).
		WithLabels(objectLabels(split)).
		WithSpec(policyac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(selector(split)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow)), nil
}

// selector of the proxies' pods. It does not hold the root Service's labels: they
// may change, and a Deployment's selector can't.
func selector(split *splitv1.TrafficSplit) *metaac.LabelSelectorApplyConfiguration {
	return metaac.LabelSelector().WithMatchLabels(map[string]string{traffic.LabelProxy: split.Name})
}
