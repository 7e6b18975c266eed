// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// Autoscaling lets the proxies of each split follow their load.
type Autoscaling struct {
	// CPUUtilization that is aimed at: the mean use of CPU by the proxies of a split, in
	// percent of what each requests. Default 80.
	CPUUtilization int32
	// IfPossible lets a split whose proxies request no CPU go without, which is refused otherwise.
	IfPossible bool
}

// complete fills in what is not set, and refuses what can't be.
func (a *Autoscaling) complete(o Options) error {
	if a.CPUUtilization == 0 {
		a.CPUUtilization = 80
	}
	_, requested := o.Resources.Requests[corev1.ResourceCPU]
	switch {
	case a.CPUUtilization < 1:
		return fmt.Errorf("nginx.Options: Autoscaling.CPUUtilization is %d percent; it must be above 0", a.CPUUtilization)
	case !requested && !a.IfPossible:
		return errors.New("nginx.Options: Autoscaling needs a request of CPU, of which the utilization is a part; set one in Resources")
	}
	return nil
}

// autoscaled is whether there is to be an autoscaler.
func autoscaled(_ traffic.Target, o Options) bool {
	_, requested := o.Resources.Requests[corev1.ResourceCPU]
	return o.Autoscaling != nil && requested
}

// MakeHorizontalPodAutoscaler builds what makes a split's proxies follow their load.
// opts.Autoscaling must be set.
func MakeHorizontalPodAutoscaler(target traffic.Target, opts Options) (*autoscalingac.HorizontalPodAutoscalerApplyConfiguration, error) {
	name := traffic.ProxyName(target.Split.Name)
	return autoscalingac.HorizontalPodAutoscaler(name, target.Split.Namespace).
		WithLabels(objectLabels(target.Split)).
		WithSpec(autoscalingac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingac.CrossVersionObjectReference().
				WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind("Deployment").WithName(name)).
			WithMinReplicas(opts.Replicas).
			WithMaxReplicas(opts.MaxReplicas).
			WithMetrics(autoscalingac.MetricSpec().
				WithType(autoscalingv2.ContainerResourceMetricSourceType).
				WithContainerResource(autoscalingac.ContainerResourceMetricSource().
					WithName(corev1.ResourceCPU).WithContainer(container).
					WithTarget(autoscalingac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(opts.Autoscaling.CPUUtilization))))), nil
}

// scaledByOthers reports whether an autoscaler or a user says how many proxies there are.
// Who sets another number than the router did owns the field, and the router leaves it to
// them. It overrules a number of 0 alone: without proxies there are no weights.
func scaledByOthers(d *appsv1.Deployment) (bool, error) {
	if d.Spec.Replicas == nil || *d.Spec.Replicas < 1 {
		return false, nil
	}
	ours, err := appsac.ExtractDeployment(d, traffic.FieldManager)
	if err != nil {
		return false, fmt.Errorf("read its managed fields: %w", err)
	}
	return ours.Spec == nil || ours.Spec.Replicas == nil, nil
}

// wantedProxies is how many proxies have to be ready before the cutover to them: no
// more than there are to be without load, so that none has to wait for a load that
// it does not get yet.
func wantedProxies(live client.Object, o Options) int {
	if d, ok := live.(*appsv1.Deployment); ok && d.Spec.Replicas != nil && *d.Spec.Replicas > 0 {
		return int(min(*d.Spec.Replicas, o.Replicas))
	}
	return int(o.Replicas)
}
