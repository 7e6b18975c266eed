// SPDX-License-Identifier: Apache-2.0

package tags

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Label on a Service is the tag that it was made for.
const Label = "serin.dev/tag"

// Name is that of the Service of a tag.
func Name(tag string, split *splitv1.TrafficSplit) (string, error) {
	name := tag + "-" + Root(split)
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return "", fmt.Errorf("the tag %q needs a Service %q, which can't be: %s; take another tag", tag, name, problems[0])
	}
	return name, nil
}

// Root is the name of the Service that is split, which the split may name in full.
func Root(split *splitv1.TrafficSplit) string {
	name, _, _ := strings.Cut(split.Spec.Service, ".")
	return name
}

// Make returns the Service that reaches a tagged backend alone: it selects what the
// backend selects and has the ports of the root Service that the backend has too, with
// the backend's target ports.
func Make(tag string, split *splitv1.TrafficSplit, root, backend *corev1.Service) (*corev1.Service, error) {
	name, err := Name(tag, split)
	if err != nil {
		return nil, err
	}
	if len(backend.Spec.Selector) == 0 || backend.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, fmt.Errorf("the Service %s selects no pods, so the tag %q could not reach any; tag one with a selector", backend.Name, tag)
	}
	ports := ports(root.Spec.Ports, backend.Spec.Ports)
	if len(ports) == 0 {
		return nil, fmt.Errorf("the Service %s has none of the ports of %s, so the tag %q could not be called; give it one", backend.Name, root.Name, tag)
	}
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: split.Namespace, Name: name,
			Labels:          map[string]string{Label: tag},
			OwnerReferences: []metav1.OwnerReference{*owner(split)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: maps.Clone(backend.Spec.Selector), Ports: ports,
			IPFamilyPolicy: backend.Spec.IPFamilyPolicy, TrafficDistribution: root.Spec.TrafficDistribution,
		},
	}, nil
}

func owner(split *splitv1.TrafficSplit) *metav1.OwnerReference {
	controls := true
	return &metav1.OwnerReference{
		APIVersion: "split.smi-spec.io/" + version(split), Kind: "TrafficSplit", Name: split.Name, UID: split.UID, Controller: &controls,
	}
}

// version is the one in which the cluster gave the split.
func version(split *splitv1.TrafficSplit) string {
	if v := split.GroupVersionKind().Version; v != "" {
		return v
	}
	return splitv1.GroupVersion.Version
}

// ports are those of the root Service that the backend has, by number and protocol.
func ports(root, backend []corev1.ServicePort) []corev1.ServicePort {
	var list []corev1.ServicePort
	for _, r := range root {
		for _, b := range backend {
			if r.Port == b.Port && protocol(r) == protocol(b) {
				list = append(list, corev1.ServicePort{
					Name: r.Name, Protocol: protocol(r), AppProtocol: r.AppProtocol, Port: r.Port, TargetPort: b.TargetPort,
				})
			}
		}
	}
	return list
}

func protocol(p corev1.ServicePort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// Made is whether a Service was made for a tag of the split.
func Made(service *corev1.Service, split *splitv1.TrafficSplit) bool {
	return metav1.IsControlledBy(service, split) && service.Labels[Label] != ""
}

// ErrForeign is a Service of that name which was not made for the split.
var ErrForeign = errors.New("belongs to another owner; take another tag, or remove that Service")

// Adopt gives the Service that is there what the one that is wanted says. What the
// cluster added, such as its address, stays.
func Adopt(have, want *corev1.Service, split *splitv1.TrafficSplit) (*corev1.Service, error) {
	if !Made(have, split) {
		return nil, fmt.Errorf("the Service %s %w", have.Name, ErrForeign)
	}
	next := have.DeepCopy()
	maps.Copy(next.Labels, want.Labels)
	next.Spec.Selector = want.Spec.Selector
	next.Spec.Ports = want.Spec.Ports
	next.Spec.TrafficDistribution = want.Spec.TrafficDistribution
	return next, nil
}
