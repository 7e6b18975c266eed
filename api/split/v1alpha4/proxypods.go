// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// systemPriority begins the names of the PriorityClasses of the cluster's own parts. Kubernetes
// takes no other class of such a name.
const systemPriority = "system-"

// Bounds of ProxyPods, which its markers have too.
const (
	maxProxies          = 1000
	maxProxyEntries     = 16 // of a map or a list
	maxProxyPullSecrets = 8
	maxProxyAnnotation  = 4096
)

// ProxyPods is how the pods of a split's proxies run. Each field replaces what the operator
// gives to all proxies; where a field is unset, that applies. Nothing here says what a proxy
// is: its image, its ServiceAccount, its volumes and its privileges are the operator's.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.maxReplicas) || self.replicas <= self.maxReplicas",message="replicas: is above maxReplicas; lower it, or raise maxReplicas"
type ProxyPods struct {
	// replicas is the minimum number of proxies, 1 to 1000. There are more where the app has
	// many endpoints, and where the proxies have much to do. When unset, it is what the
	// operator gives to each split.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// maxReplicas is the largest number of proxies, whatever their load, 1 to 1000. When unset,
	// it is what the operator allows, or replicas if that is more. Lowered in the middle of a
	// release, it stops proxies.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// resources of the container of each proxy. The memory limit decides how many requests a
	// proxy serves at once.
	// +optional
	Resources *ProxyResources `json:"resources,omitempty"`

	// priorityClassName of the pods. Names that begin with "system-" are refused: those
	// classes are for parts of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system-')",message="priorityClassName: classes whose names begin with system- are for parts of the cluster; name another one"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// nodeSelector has the labels of the nodes that the pods may run on.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",message="nodeSelector: a key is not that of a label; write <name> or <domain>/<name>"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// tolerations are the taints of nodes that the pods tolerate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// annotations of the pods, besides those that the operator gives to all.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",message="annotations: a key is not that of an annotation; write <name> or <domain>/<name>"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('serin.dev/') && !k.contains('.serin.dev/'))",message="annotations: only Serin sets annotations of serin.dev; remove them"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// imagePullSecrets are names of Secrets, in the same namespace, that nodes pull the
	// proxies' image with.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// ProxyResources are the resources of a proxy's container. Each quantity replaces the
// operator's. What the operator requests is lowered to a limit that is given here, and a limit
// of the operator is raised to what is requested here.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="requests: is above a limit; lower it, or raise the limit"
type ProxyResources struct {
	// requests are what is reserved for the container: cpu, memory, ephemeral-storage. That of
	// cpu is above 0, since the autoscaler goes by a part of it.
	// +optional
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'])",message="requests: a proxy has cpu, memory and ephemeral-storage; remove the others"
	// +kubebuilder:validation:XValidation:rule="self.all(k, quantity(string(self[k])).compareTo(quantity('0')) >= (k == 'cpu' ? 1 : 0))",message="requests: a quantity is below 0, or that of cpu is 0; correct it"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits are the most that the container may use: cpu, memory, ephemeral-storage. Each is
	// above 0. A CPU limit adds latency to every version alike.
	// +optional
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'])",message="limits: a proxy has cpu, memory and ephemeral-storage; remove the others"
	// +kubebuilder:validation:XValidation:rule="self.all(k, quantity(string(self[k])).compareTo(quantity('0')) > 0)",message="limits: a quantity is not above 0; correct it"
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// Toleration of a taint, as a pod has it.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) && size(self.key) > 0 || has(self.operator) && self.operator == 'Exists'",message="tolerations: without a key the operator has to be Exists; give a key, or write Exists"
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="tolerations: the operator Exists takes no value; remove it, or write Equal"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",message="tolerations: tolerationSeconds takes the effect NoExecute; write that, or remove tolerationSeconds"
type Toleration struct {
	// key of the taint. When empty, every taint is tolerated.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`
	Key string `json:"key,omitempty"`

	// operator is Equal, for a taint of that value, or Exists, for one of any value. Default
	// Equal.
	// +optional
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Value string `json:"value,omitempty"`

	// effect of the taint: NoSchedule, PreferNoSchedule or NoExecute. When unset, every effect
	// is tolerated.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is how long, in seconds, a pod stays on a node that gets the taint.
	// When unset, it stays for ever.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// Check finds what an app may not say of its proxies: what Valid finds, and what exceeds the
// schema of a Rollout, since an annotation has none. The error begins with the field.
func (p *ProxyPods) Check() error {
	if p == nil {
		return nil
	}
	return cmp.Or(p.checkReplicas(), p.Resources.check(), p.Valid(), p.checkBounds())
}

// Valid finds what the API server would refuse of pods, and what only Serin may say of them. The
// error begins with the field.
func (p *ProxyPods) Valid() error {
	if name := p.PriorityClassName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("priorityClassName: %.63q is not the name of a PriorityClass", name)
	}
	return cmp.Or(p.checkNodeSelector(), p.checkTolerations(), p.checkAnnotations(), p.checkSecrets())
}

// checkBounds is about what an operator may say, and an app may not.
func (p *ProxyPods) checkBounds() error {
	if strings.HasPrefix(p.PriorityClassName, systemPriority) {
		return fmt.Errorf("priorityClassName: %.63q is for parts of the cluster; name another class", p.PriorityClassName)
	}
	for _, of := range []struct {
		field     string
		has, most int
	}{
		{"nodeSelector", len(p.NodeSelector), maxProxyEntries},
		{"tolerations", len(p.Tolerations), maxProxyEntries},
		{"annotations", len(p.Annotations), maxProxyEntries},
		{"imagePullSecrets", len(p.ImagePullSecrets), maxProxyPullSecrets},
	} {
		if of.has > of.most {
			return fmt.Errorf("%s: has %d entries, more than %d; remove some", of.field, of.has, of.most)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			return fmt.Errorf("annotations: the domain of %.63q has upper case; write it in lower case", key)
		case utf8.RuneCountInString(string(p.Annotations[key])) > maxProxyAnnotation:
			return fmt.Errorf("annotations: the value of %.63q has more than %d characters; shorten it", key, maxProxyAnnotation)
		}
	}
	for i, name := range p.ImagePullSecrets {
		if slices.Contains(p.ImagePullSecrets[:i], name) {
			return fmt.Errorf("imagePullSecrets: %.63q is there twice; remove one", name)
		}
	}
	return nil
}

func (p *ProxyPods) checkReplicas() error {
	least, most := int32(1), int32(maxProxies)
	if p.Replicas != nil {
		least = *p.Replicas
	}
	if p.MaxReplicas != nil {
		most = *p.MaxReplicas
	}
	switch {
	case least < 1 || least > maxProxies:
		return fmt.Errorf("replicas: %d is not from 1 to %d", least, maxProxies)
	case most < 1 || most > maxProxies:
		return fmt.Errorf("maxReplicas: %d is not from 1 to %d", most, maxProxies)
	case least > most:
		return fmt.Errorf("replicas: %d is above maxReplicas, %d; lower it, or raise maxReplicas", least, most)
	}
	return nil
}

// proxyResourceNames are those that a container has without more of the cluster.
var proxyResourceNames = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func (r *ProxyResources) check() error {
	if r == nil {
		return nil
	}
	if err := cmp.Or(checkQuantities("requests", r.Requests, corev1.ResourceCPU), checkQuantities("limits", r.Limits, proxyResourceNames...)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		if request, found := r.Requests[name]; found && request.Cmp(r.Limits[name]) > 0 {
			return fmt.Errorf("resources: requests more %s than its limit; correct one", name)
		}
	}
	return nil
}

// checkQuantities refuses 0 too for those which the autoscaler and the protection from overload
// are computed from.
func checkQuantities(field string, list corev1.ResourceList, above0 ...corev1.ResourceName) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch quantity := list[name]; {
		case !slices.Contains(proxyResourceNames, name):
			return fmt.Errorf("resources.%s: %.40q is not a resource of a proxy; name cpu, memory or ephemeral-storage", field, name)
		case quantity.Sign() < 0:
			return fmt.Errorf("resources.%s: %s is below 0; correct it", field, name)
		case quantity.IsZero() && slices.Contains(above0, name):
			return fmt.Errorf("resources.%s: %s is 0; correct it, or remove it", field, name)
		}
	}
	return nil
}

func (p *ProxyPods) checkNodeSelector() error {
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(string(p.NodeSelector[key]))) > 0 {
			return fmt.Errorf("nodeSelector: %.63q: %.63q is not a label", key, p.NodeSelector[key])
		}
	}
	return nil
}

// checkAnnotations lets a domain have upper case, as Kubernetes does.
func (p *ProxyPods) checkAnnotations() error {
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		switch domain, _, qualified := strings.Cut(key, "/"); {
		case len(validation.IsQualifiedName(strings.ToLower(key))) > 0:
			return fmt.Errorf("annotations: %.63q is not the key of an annotation", key)
		case qualified && (domain == "serin.dev" || strings.HasSuffix(domain, ".serin.dev")):
			return fmt.Errorf("annotations: only Serin sets %.63q; remove it", key)
		}
	}
	return nil
}

func (p *ProxyPods) checkSecrets() error {
	for _, name := range p.ImagePullSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("imagePullSecrets: %.63q is not the name of a Secret", name)
		}
	}
	return nil
}

func (p *ProxyPods) checkTolerations() error {
	for i := range p.Tolerations {
		if err := p.Tolerations[i].check(); err != nil {
			return fmt.Errorf("tolerations[%d]: %w", i, err)
		}
	}
	return nil
}

func (t *Toleration) check() error {
	switch {
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, t.Operator):
		return fmt.Errorf("the operator %.63q is neither Equal nor Exists", t.Operator)
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect):
		return fmt.Errorf("the effect %.63q is not one of NoSchedule, PreferNoSchedule and NoExecute", t.Effect)
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return errors.New("tolerationSeconds takes the effect NoExecute")
	}
	return t.checkTaint()
}

// checkTaint is about the key and the value.
func (t *Toleration) checkTaint() error {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case t.Key == "" && !exists:
		return errors.New("without a key the operator has to be Exists")
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Errorf("%.63q is not the key of a taint", t.Key)
	case exists && t.Value != "":
		return errors.New("the operator Exists takes no value")
	case !exists && len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Errorf("%.63q is not the value of a taint", t.Value)
	}
	return nil
}
