// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// labelInstance is what Helm charts call their release, and what Argo CD may know its
// objects by.
const labelInstance = "app.kubernetes.io/instance"

// notCopied begin the labels by which a tool knows its own objects: one that finds them on a
// Service that it did not make deletes it. Serin's own say whose pods a Service selects.
var notCopied = []string{
	"serin.dev/", "app.kubernetes.io/managed-by", "helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/",
	"fluxcd.io/", "kapp.k14s.io/", "objectset.rio.cattle.io/", "cli-utils.sigs.k8s.io/", "applyset.kubernetes.io/", "skaffold.dev/",
}

// monitoring begin the annotations of a Service that monitors read.
var monitoring = []string{"prometheus.io/", "ad.datadoghq.com/", "metrics.dynatrace.com/", "k8s.grafana.com/"}

// monitoredLabels are the labels of a root Service that the Services of its versions carry
// too, so that what selects Services by labels finds the pods of each version.
func monitoredLabels(root *corev1.Service) map[string]string {
	out := maps.Clone(root.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return hasPrefix(key, notCopied) || key == labelInstance && !instanceIsNoOwner(root)
	})
	return out
}

// instanceIsNoOwner is true when another mark says whose the root Service is. Without one,
// the label may be what Argo CD prunes by.
func instanceIsNoOwner(root *corev1.Service) bool {
	_, byHelm := root.Annotations["meta.helm.sh/release-name"]
	_, byArgo := root.Annotations["argocd.argoproj.io/tracking-id"]
	return byHelm || byArgo
}

// monitoredAnnotations are those of a root Service that monitors read.
func monitoredAnnotations(root *corev1.Service) map[string]string {
	out := maps.Clone(root.Annotations)
	maps.DeleteFunc(out, func(key, _ string) bool { return !hasPrefix(key, monitoring) })
	return out
}

func hasPrefix(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}
