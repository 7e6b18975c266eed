// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Claims names the PersistentVolumeClaims that Deployments of a manifest mount.
func Claims(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, o := range objects {
		if o.GetKind() != deploymentKind {
			continue
		}
		if d, ok := as[appsv1.Deployment](o); ok {
			names = append(names, claimsOf(&d.Spec.Template.Spec)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func claimsOf(spec *corev1.PodSpec) []string {
	var names []string
	for i := range spec.Volumes {
		if c := spec.Volumes[i].PersistentVolumeClaim; c != nil {
			names = append(names, c.ClaimName)
		}
	}
	return names
}

// canNotRunTwice tells why pods of a template can't run beside those of the release.
func (c *comparison) canNotRunTwice(k key, d *appsv1.Deployment) []string {
	var reasons []string
	add := func(format string, args ...any) {
		reasons = append(reasons, k.String()+": "+fmt.Sprintf(format, args...))
	}
	spec := &d.Spec.Template.Spec
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		add("its strategy is Recreate, so two versions of it must not run at the same time: use a rolling update, or upgrade without a canary")
	}
	if spec.HostNetwork {
		add("its pods use the network of their node (hostNetwork), where two pods would take the same ports: use the network of pods")
	}
	if ports := hostPorts(spec); len(ports) > 0 {
		add("its pods use ports of their node (hostPort %s), and only one pod can have each: use a Service", strings.Join(ports, ", "))
	}
	for _, claim := range claimsOf(spec) {
		if why := c.canNotShare(claim); why != "" {
			add("its pods mount PersistentVolumeClaim/%s, %s", claim, why)
		}
	}
	account := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	if c.adds("ServiceAccount", account) {
		// A copy of the account would have none of its rights, and rights are not given away.
		add("its pods run as ServiceAccount/%s, which config adds: create the account and its rights with an upgrade of the release first", account)
	}
	return reasons
}

// adds tells whether an object of the core group is only in the candidate.
func (c *comparison) adds(kind, name string) bool {
	k := key{kind: kind, namespace: c.in.Namespace, name: name}
	return c.candidate[k] != nil && c.current[k] == nil
}

func (c *comparison) canNotShare(claim string) string {
	if c.adds("PersistentVolumeClaim", claim) {
		return "which config adds: create it with an upgrade of the release first"
	}
	modes, found := c.in.Claims[claim]
	if !found {
		return "which does not exist: create it first"
	}
	if slices.Contains(modes, corev1.ReadWriteMany) || slices.Contains(modes, corev1.ReadOnlyMany) {
		return ""
	}
	return "which only one node or pod can write to: use one with the access mode ReadWriteMany, or upgrade without a canary"
}

func hostPorts(spec *corev1.PodSpec) []string {
	var ports []string
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.HostPort != 0 {
					ports = append(ports, strconv.Itoa(int(p.HostPort)))
				}
			}
		}
	}
	return ports
}
