// SPDX-License-Identifier: Apache-2.0

package mesh_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic/mesh"
)

func TestPodsOfAMeshAreToldFromOthers(t *testing.T) {
	with := func(container string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: container}}}}
	}
	native := corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "istio-proxy"}}}}
	annotated := func(key, value string) corev1.Pod {
		pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
		pod.Annotations = map[string]string{key: value}
		return pod
	}
	linkerd := func(policy string) corev1.Pod {
		pod := with("linkerd-proxy")
		pod.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "LINKERD2_PROXY_INBOUND_DEFAULT_POLICY", Value: policy}}
		return pod
	}
	const inbound = "config.linkerd.io/default-inbound-policy"
	open := annotated(inbound, "all-unauthenticated")
	open.Spec.Containers = append(open.Spec.Containers, corev1.Container{Name: "linkerd-proxy"})
	other := linkerd("all-unauthenticated")
	other.Spec.Containers = append(other.Spec.Containers, corev1.Container{Name: "helper", Env: linkerd("deny").Spec.Containers[1].Env})
	labelled := func(key, value string) mesh.Namespace { return mesh.Namespace{Labels: map[string]string{key: value}} }
	plain := with("helper")
	for name, test := range map[string]struct {
		pods      []corev1.Pod
		namespace mesh.Namespace
		want      string // "" when proxies are no obstacle
	}{
		"no mesh":                             {pods: []corev1.Pod{plain}},
		"no pods":                             {},
		"a sidecar of Istio":                  {pods: []corev1.Pod{plain, with("istio-proxy")}, want: "Istio"},
		"a native sidecar of Istio":           {pods: []corev1.Pod{native}, want: "Istio"},
		"an ambient pod of Istio":             {pods: []corev1.Pod{annotated("ambient.istio.io/redirection", "enabled")}, want: "Istio"},
		"a pod that ambient Istio left out":   {pods: []corev1.Pod{annotated("ambient.istio.io/redirection", "disabled")}},
		"no pods yet, injected by Istio":      {namespace: labelled("istio-injection", "enabled"), want: "Istio"},
		"no pods yet, a revision of Istio":    {namespace: labelled("istio.io/rev", "canary"), want: "Istio"},
		"no pods yet, ambient":                {namespace: labelled("istio.io/dataplane-mode", "ambient"), want: "Istio"},
		"no pods yet, not injected":           {namespace: labelled("istio-injection", "disabled")},
		"pods that the injection leaves out":  {pods: []corev1.Pod{plain}, namespace: labelled("istio-injection", "enabled")},
		"Linkerd, which lets everyone in":     {pods: []corev1.Pod{linkerd("all-unauthenticated")}},
		"Linkerd, which authenticates":        {pods: []corev1.Pod{linkerd("all-authenticated")}, want: "Linkerd"},
		"Linkerd, which denies":               {pods: []corev1.Pod{linkerd("deny")}, want: "Linkerd"},
		"Linkerd, by the namespace's word":    {pods: []corev1.Pod{with("linkerd-proxy")}, namespace: mesh.Namespace{Annotations: map[string]string{inbound: "cluster-authenticated"}}, want: "Linkerd"},
		"Linkerd, by the pod's own word":      {pods: []corev1.Pod{open}, namespace: mesh.Namespace{Annotations: map[string]string{inbound: "deny"}}},
		"Linkerd, another program's variable": {pods: []corev1.Pod{other}},
		"Linkerd's annotation and no sidecar": {pods: []corev1.Pod{annotated(inbound, "deny")}},
		"Consul":                              {pods: []corev1.Pod{annotated("consul.hashicorp.com/connect-inject-status", "injected")}, want: "Consul"},
		"Kuma":                                {pods: []corev1.Pod{with("kuma-sidecar")}, want: "Kuma"},
		"no pods yet, injected by Kuma":       {namespace: labelled("kuma.io/sidecar-injection", "enabled"), want: "Kuma"},
	} {
		t.Run(name, func(t *testing.T) {
			got := mesh.Refusal(test.pods, test.namespace)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || got != "" && !strings.Contains(got, "; choose ") {
				t.Errorf("refused by %q", got)
			}
		})
	}
}
