// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Namespace is what a namespace says of meshes.
type Namespace struct {
	Labels, Annotations map[string]string
}

// member is how pods of one mesh are recognized.
type member struct {
	// mesh that the pod is in.
	mesh string
	// sidecar is the name of the container that the mesh adds; "" for a mesh without sidecars.
	sidecar string
	// marks are annotations by which the mesh says that it has taken the pod in.
	marks map[string]string
	// announced are labels of a namespace whose pods the mesh takes in; an empty value is any.
	announced map[string]string
	// strict limits the refusal to pods of which it is true; nil for all.
	strict func(corev1.Pod, Namespace) bool
	// instead is what to choose in place of proxies.
	instead string
}

// members are the meshes that are known.
//
// A sidecar of Istio leads requests by their Host header, whatever address they are sent to. So
// those of proxies in the mesh would come back to the root Service, and proxies outside of it
// would have no identity, and take encryption from requests that had it, also with permissive
// mutual TLS. Sidecars of Linkerd lead requests by address: proxies of an injected namespace
// are injected too, and only policies that ask who a client is keep the operator, or the
// clients behind the proxies, out.
var members = []member{
	{
		mesh: "Istio", sidecar: "istio-proxy", marks: map[string]string{"ambient.istio.io/redirection": "enabled"},
		announced: map[string]string{"istio-injection": "enabled", "istio.io/rev": "", "istio.io/dataplane-mode": "ambient"},
		instead:   "the router istio, or gatewayAPI with a waypoint",
	},
	{
		mesh: "Linkerd", sidecar: "linkerd-proxy", strict: authenticates,
		instead: "the router gatewayAPI with a route of the Service, or smi",
	},
	{
		mesh: "Consul", sidecar: "consul-dataplane", marks: map[string]string{"consul.hashicorp.com/connect-inject-status": "injected"},
		instead: "the router gatewayAPI with a gateway in front of the Service, or none",
	},
	{
		mesh: "Kuma", sidecar: "kuma-sidecar", marks: map[string]string{"kuma.io/sidecar-injected": "true"},
		announced: map[string]string{"kuma.io/sidecar-injection": "enabled"},
		instead:   "the router gatewayAPI with a route of the Service, or none",
	},
}

// Refusal says why proxies can't stand in for pods, and what to choose instead; "" when they
// can. What a namespace announces counts only while there is no pod to look at.
func Refusal(pods []corev1.Pod, namespace Namespace) string {
	for _, m := range members {
		how := "its pods are part of the mesh"
		found := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return m.has(pod) && (m.strict == nil || m.strict(pod, namespace)) })
		if len(pods) == 0 {
			how, found = "its namespace adds its pods to the mesh", m.announces(namespace)
		}
		if !found {
			continue
		}
		if m.strict != nil {
			how += ", and take requests only from clients that it knows"
		}
		return fmt.Sprintf("the mesh %s serves this Service: %s; behind proxies, requests would have neither the identity of their client nor encryption; choose %s", m.mesh, how, m.instead)
	}
	return ""
}

// has is true for a pod of the mesh.
func (m member) has(pod corev1.Pod) bool {
	named := func(c corev1.Container) bool { return m.sidecar != "" && c.Name == m.sidecar }
	if slices.ContainsFunc(pod.Spec.Containers, named) || slices.ContainsFunc(pod.Spec.InitContainers, named) {
		return true
	}
	for key, value := range m.marks {
		if pod.Annotations[key] == value {
			return true
		}
	}
	return false
}

func (m member) announces(namespace Namespace) bool {
	for key, value := range m.announced {
		if got := namespace.Labels[key]; got != "" && (value == "" || got == value) {
			return true
		}
	}
	return false
}

// authenticates is true for a pod of Linkerd that takes requests only from clients that the
// mesh knows. The injector writes the policy of the cluster, namespace or pod into the sidecar.
func authenticates(pod corev1.Pod, namespace Namespace) bool {
	const annotation, variable = "config.linkerd.io/default-inbound-policy", "LINKERD2_PROXY_INBOUND_DEFAULT_POLICY"
	policy := pod.Annotations[annotation]
	if policy == "" {
		policy = namespace.Annotations[annotation]
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, e := range c.Env {
			if c.Name == "linkerd-proxy" && e.Name == variable && e.Value != "" {
				policy = e.Value
			}
		}
	}
	return slices.Contains([]string{"all-authenticated", "cluster-authenticated", "deny"}, policy)
}

// Labels keep the pods of proxies out of meshes that would lead their requests elsewhere.
func Labels() map[string]string {
	return map[string]string{
		"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
	}
}

// Annotations do the same where a mesh looks at annotations.
func Annotations() map[string]string {
	return map[string]string{"consul.hashicorp.com/connect-inject": "false"}
}
