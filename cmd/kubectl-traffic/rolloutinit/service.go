// SPDX-License-Identifier: Apache-2.0

package rolloutinit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// longestService is how long the name of a Service may be, so that Serin can make
// "<service>-stable" and "<service>-canary".
const longestService = 56

// ServiceOf is the Service that selects the pods of a Deployment: the one of that name, or
// the only one when the name is "".
func ServiceOf(d *appsv1.Deployment, services []corev1.Service, name string) (*corev1.Service, error) {
	var selecting []corev1.Service
	for _, s := range services {
		if len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			selecting = append(selecting, s)
		}
	}
	if name != "" {
		return named(d, services, selecting, name)
	}
	switch len(selecting) {
	case 0:
		return nil, fmt.Errorf("no Service in the namespace %s selects the pods of the Deployment %s, which have the labels %s: create one, or correct its selector",
			d.Namespace, d.Name, labels.FormatLabels(d.Spec.Template.Labels))
	case 1:
		return checked(d, &selecting[0])
	}
	names := make([]string, 0, len(selecting))
	for _, s := range selecting {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("%d Services select the pods of the Deployment %s: %s; say which one clients call, with --service", len(names), d.Name, strings.Join(names, ", "))
}

func named(d *appsv1.Deployment, all, selecting []corev1.Service, name string) (*corev1.Service, error) {
	is := func(s corev1.Service) bool { return s.Name == name }
	if i := slices.IndexFunc(selecting, is); i >= 0 {
		return checked(d, &selecting[i])
	}
	if slices.ContainsFunc(all, is) {
		return nil, fmt.Errorf("--service: the Service %s does not select the pods of the Deployment %s, which have the labels %s: name another one, or correct its selector",
			name, d.Name, labels.FormatLabels(d.Spec.Template.Labels))
	}
	return nil, fmt.Errorf("--service: there is no Service %s in the namespace %s", name, d.Namespace)
}

// checked refuses a Service that a Rollout can't use, or whose ports lead nowhere.
func checked(d *appsv1.Deployment, s *corev1.Service) (*corev1.Service, error) {
	if len(s.Name) > longestService {
		return nil, fmt.Errorf("the name of the Service %s has %d characters: Serin makes %s-stable, so at most %d are possible", s.Name, len(s.Name), s.Name, longestService)
	}
	if len(s.Spec.Ports) == 0 {
		return nil, fmt.Errorf("the Service %s has no ports: add those that clients call", s.Name)
	}
	for _, p := range s.Spec.Ports {
		if p.TargetPort.Type == intstr.String && !declares(d, p.TargetPort.StrVal) {
			return nil, fmt.Errorf("the Service %s sends port %d to the container port %q, and no container of the Deployment %s has a port of that name: name it in spec.template.spec.containers[].ports[].name",
				s.Name, p.Port, p.TargetPort.StrVal, d.Name)
		}
	}
	return s, nil
}

func declares(d *appsv1.Deployment, port string) bool {
	spec := d.Spec.Template.Spec
	return slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
	})
}

// unnamed are the ports of a Service of which neither a name nor an appProtocol says what
// they speak.
func unnamed(s *corev1.Service) (ports []string) {
	for _, p := range s.Spec.Ports {
		if p.Name == "" && p.AppProtocol == nil && p.Protocol != corev1.ProtocolUDP {
			ports = append(ports, strconv.Itoa(int(p.Port)))
		}
	}
	return ports
}
