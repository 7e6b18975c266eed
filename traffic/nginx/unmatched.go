// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// errNoRoot is why no Service can be made for the requests that match none.
var errNoRoot = errors.New("there is no root Service whose pods could get the requests that match none")

// leavesUnmatched reports whether the proxies need such a Service.
func leavesUnmatched(target traffic.Target, _ Options) bool {
	return traffic.LeavesUnmatched(target.Split)
}

// MakeUnmatchedService builds the Service for the requests that match none: with the ports of the
// root Service, for the pods that its owner declares.
func MakeUnmatchedService(target traffic.Target, _ Options) (*coreac.ServiceApplyConfiguration, error) {
	if target.Root == nil {
		return nil, errNoRoot
	}
	split := target.Split
	config := coreac.Service(traffic.UnmatchedName(split.Name), split.Namespace).WithLabels(objectLabels(split))
	return config.WithSpec(unmatchedSpec(target.Root, traffic.DeclaredSelector(target.Root))), nil
}

// unmatchedServiceOf is what a live Service has of what MakeUnmatchedService says. Its managed
// fields can't tell, which the cache does not hold of Services.
func unmatchedServiceOf(live *corev1.Service, _ string) (*coreac.ServiceApplyConfiguration, error) {
	config := coreac.Service(live.Name, live.Namespace)
	for key := range objectLabels(&splitv1.TrafficSplit{}) {
		if value, found := live.Labels[key]; found {
			config.WithLabels(map[string]string{key: value})
		}
	}
	return config.WithSpec(unmatchedSpec(live, live.Spec.Selector)), nil
}

func unmatchedSpec(s *corev1.Service, selector map[string]string) *coreac.ServiceSpecApplyConfiguration {
	spec := coreac.ServiceSpec().WithType(corev1.ServiceTypeClusterIP).WithSelector(selector)
	for _, p := range s.Spec.Ports {
		port := coreac.ServicePort().WithPort(p.Port).WithProtocol(corev1.ProtocolTCP).WithTargetPort(p.TargetPort)
		if p.Name != "" {
			port.WithName(p.Name)
		}
		if p.Protocol != "" {
			port.WithProtocol(p.Protocol)
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			port.WithTargetPort(intstr.FromInt32(p.Port))
		}
		port.AppProtocol = p.AppProtocol
		spec.WithPorts(port)
	}
	spec.TrafficDistribution = s.Spec.TrafficDistribution
	spec.IPFamilyPolicy = s.Spec.IPFamilyPolicy
	return spec.WithIPFamilies(s.Spec.IPFamilies...)
}
