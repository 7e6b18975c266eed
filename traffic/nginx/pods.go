// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"maps"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// override replaces what the operator gives to proxies by what a split asks for.
func (o *Options) override(own splitv1.ProxyPods) {
	pods := o.Pods
	if own.Replicas != nil {
		o.Replicas = *own.Replicas
		o.MaxReplicas = max(o.MaxReplicas, o.Replicas)
	}
	if own.MaxReplicas != nil {
		o.MaxReplicas = *own.MaxReplicas
		o.Replicas = min(o.Replicas, o.MaxReplicas)
	}
	if own.PriorityClassName != "" {
		pods.PriorityClassName = own.PriorityClassName
	}
	if own.NodeSelector != nil {
		pods.NodeSelector = own.NodeSelector
	}
	if own.Tolerations != nil {
		pods.Tolerations = own.Tolerations
	}
	if own.ImagePullSecrets != nil {
		pods.ImagePullSecrets = own.ImagePullSecrets
	}
	pods.Annotations = maps.Clone(pods.Annotations)
	if pods.Annotations == nil {
		pods.Annotations = map[string]splitv1.AnnotationValue{}
	}
	maps.Copy(pods.Annotations, own.Annotations)
	o.Pods, o.Resources = pods, merged(o.Resources, own.Resources)
}

// plain are labels or annotations as Kubernetes' types have them.
func plain[V ~string](of map[string]V) map[string]string {
	out := make(map[string]string, len(of))
	for key, value := range of {
		out[key] = string(value)
	}
	return out
}
