// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// maxReplicas of the proxies of one split.
const maxReplicas = 1000

// override replaces what the operator gives to proxies by what a split asks for.
func (o *Options) override(own splitv1.ProxyPods) {
	pods := o.Pods
	if own.Replicas != nil {
		o.Replicas = *own.Replicas
		o.MaxReplicas = max(o.MaxReplicas, o.Replicas)
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
		pods.Annotations = map[string]string{}
	}
	maps.Copy(pods.Annotations, own.Annotations)
	o.Pods = pods
}

// CheckPods finds what the API server would refuse of proxies, and what only Serin may say of
// them. The error begins with the field.
func CheckPods(pods splitv1.ProxyPods) error {
	if n := pods.Replicas; n != nil && (*n < 1 || *n > maxReplicas) {
		return fmt.Errorf("replicas: %d is not from 1 to %d", *n, maxReplicas)
	}
	if name := pods.PriorityClassName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("priorityClassName: %.63q is not the name of a PriorityClass", name)
	}
	for _, key := range slices.Sorted(maps.Keys(pods.NodeSelector)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(pods.NodeSelector[key])) > 0 {
			return fmt.Errorf("nodeSelector: %.63q: %.63q is not a label of a node", key, pods.NodeSelector[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pods.Annotations)) {
		switch domain, _, _ := strings.Cut(key, "/"); {
		case len(validation.IsQualifiedName(strings.ToLower(key))) > 0:
			return fmt.Errorf("annotations: %.63q is not the key of an annotation", key)
		case domain == "serin.dev" || strings.HasSuffix(domain, ".serin.dev"):
			return fmt.Errorf("annotations: only Serin sets %.63q; remove it", key)
		}
	}
	for _, name := range pods.ImagePullSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("imagePullSecrets: %.63q is not the name of a Secret", name)
		}
	}
	for i := range pods.Tolerations {
		if err := checkToleration(pods.Tolerations[i]); err != nil {
			return fmt.Errorf("tolerations[%d]: %w", i, err)
		}
	}
	return nil
}

func checkToleration(t corev1.Toleration) error {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, t.Operator):
		return fmt.Errorf("the operator %.63q is neither Equal nor Exists", t.Operator)
	case t.Key == "" && !exists:
		return errors.New("without a key the operator has to be Exists")
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Errorf("%.63q is not the key of a taint", t.Key)
	case exists && t.Value != "":
		return errors.New("the operator Exists takes no value")
	case !exists && len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Errorf("%.63q is not the value of a taint", t.Value)
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect):
		return fmt.Errorf("the effect %.63q is not one of NoSchedule, PreferNoSchedule and NoExecute", t.Effect)
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return errors.New("tolerationSeconds takes the effect NoExecute")
	}
	return nil
}
