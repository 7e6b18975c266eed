// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/mesh"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const (
	// nonRoot is the user and group that proxies run as.
	nonRoot int64 = 65532
	// privilegedPorts are those below which a process without privileges may only
	// listen with the sysctl unprivilegedPorts.
	privilegedPorts   int32 = 1024
	unprivilegedPorts       = "net.ipv4.ip_unprivileged_port_start"

	// AnnotationAccount on the pods of proxies is the UID of their ServiceAccount: when
	// that is made anew, their tokens are void, and a rollout replaces them.
	AnnotationAccount = "serin.dev/service-account-uid"

	// MemoryVariable is in the environment of proxies: the limit of their memory.
	MemoryVariable = "MEMORY_LIMIT"

	container = "proxy"
	volume    = "run"
)

// MakeDeployment builds the proxies of a split. It fails when a port of the root
// Service can't be listened on.
//
// A proxy is added before one is taken away, so that a change of the operator
// takes no capacity from a split that is live.
func MakeDeployment(target traffic.Target, opts Options) (*appsac.DeploymentApplyConfiguration, error) {
	listeners, err := conf.Listeners(target.Resolved)
	if err != nil {
		return nil, err
	}
	split := target.Split
	return appsac.Deployment(traffic.ProxyName(split.Name), split.Namespace).
		WithLabels(objectLabels(split)).
		WithSpec(appsac.DeploymentSpec().
			WithReplicas(opts.Replicas).
			WithMinReadySeconds(2).
			WithRevisionHistoryLimit(1).
			WithSelector(selector(split)).
			WithStrategy(appsac.DeploymentStrategy().WithType("RollingUpdate").
				WithRollingUpdate(appsac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(coreac.PodTemplateSpec().
				WithLabels(podLabels(split)).WithLabels(mesh.Labels()).
				WithAnnotations(plain(opts.Pods.Annotations)).
				WithAnnotations(map[string]string{"kubectl.kubernetes.io/default-container": container}).
				WithAnnotations(mesh.Annotations()).
				WithSpec(podSpec(target, listeners, opts)))), nil
}

// podLabels are none that a user selects by: an autoscaler, a budget, a monitor or a policy
// of the app must not take a proxy for one of its pods.
func podLabels(split *splitv1.TrafficSplit) map[string]string {
	return map[string]string{traffic.LabelProxy: split.Name}
}

func podSpec(target traffic.Target, listeners []conf.Listener, opts Options) *coreac.PodSpecApplyConfiguration {
	split := target.Split
	spec := coreac.PodSpec().
		WithServiceAccountName(traffic.SharedProxyName).
		WithAutomountServiceAccountToken(true).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(int64(opts.GracePeriod.Seconds())).
		WithSecurityContext(podSecurity(listeners)).
		WithAffinity(apart(split)).
		WithTopologySpreadConstraints(
			spreadOver(corev1.LabelTopologyZone, opts.Spread.Zones, split),
			spreadOver(corev1.LabelHostname, opts.Spread.Nodes, split)).
		WithVolumes(coreac.Volume().WithName(volume).WithEmptyDir(coreac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse(volumeSize)))).
		WithContainers(proxyContainer(split.Name, listeners, opts))
	for _, secret := range opts.Pods.ImagePullSecrets {
		spec.WithImagePullSecrets(coreac.LocalObjectReference().WithName(secret))
	}
	if opts.Pods.PriorityClassName != "" {
		spec.WithPriorityClassName(opts.Pods.PriorityClassName)
	}
	for i := range opts.Pods.Tolerations {
		spec.WithTolerations(toleration(opts.Pods.Tolerations[i]))
	}
	return spec.WithNodeSelector(plain(opts.Pods.NodeSelector))
}

// spreadOver has no node or zone get two proxies more than another. Where that is strict,
// what takes no proxy at all, such as a node that is being drained, does not count.
func spreadOver(key string, strict bool, split *splitv1.TrafficSplit) *coreac.TopologySpreadConstraintApplyConfiguration {
	over := coreac.TopologySpreadConstraint().WithMaxSkew(1).WithTopologyKey(key).WithLabelSelector(selector(split))
	if strict {
		return over.WithWhenUnsatisfiable(corev1.DoNotSchedule).WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor)
	}
	return over.WithWhenUnsatisfiable(corev1.ScheduleAnyway)
}

// toleration is a bounded one as pods have it.
func toleration(given splitv1.Toleration) *coreac.TolerationApplyConfiguration {
	out := coreac.Toleration()
	if given.Key != "" {
		out.WithKey(given.Key)
	}
	if given.Operator != "" {
		out.WithOperator(given.Operator)
	}
	if given.Value != "" {
		out.WithValue(given.Value)
	}
	if given.Effect != "" {
		out.WithEffect(given.Effect)
	}
	if given.TolerationSeconds != nil {
		out.WithTolerationSeconds(*given.TolerationSeconds)
	}
	return out
}

func proxyContainer(split string, listeners []conf.Listener, opts Options) *coreac.ContainerApplyConfiguration {
	return coreac.Container().
		WithName(container).
		WithImage(opts.Image).WithImagePullPolicy(opts.PullPolicy).
		WithArgs("--namespace=$(POD_NAMESPACE)", "--split="+split, "--pod-uid=$(POD_UID)").
		WithEnv(
			fieldEnv("POD_UID", "metadata.uid"),
			fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			// That of the node where the container has no limit. A proxy of an older version does not
			// know it, and would refuse a flag.
			coreac.EnvVar().WithName(MemoryVariable).WithValueFrom(coreac.EnvVarSource().
				WithResourceFieldRef(coreac.ResourceFieldSelector().WithContainerName(container).WithResource("limits.memory").WithDivisor(resource.MustParse("0")))),
			coreac.EnvVar().WithName("GOMEMLIMIT").WithValue(agentMemory),
			coreac.EnvVar().WithName("GOMAXPROCS").WithValue(strconv.Itoa(opts.Workers)),
		).
		WithPorts(containerPorts(listeners)...).
		WithResources(coreac.ResourceRequirements().
			WithRequests(canonical(opts.Resources.Requests)).WithLimits(canonical(opts.Resources.Limits))).
		WithSecurityContext(coreac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
			WithCapabilities(coreac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(coreac.VolumeMount().WithName(volume).WithMountPath(string(conf.DefaultDir))).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(1).WithFailureThreshold(3)).
		WithLivenessProbe(probe("/healthz").WithPeriodSeconds(10).WithFailureThreshold(3))
}

// containerPorts name the listeners as the root Service calls them. A number may
// appear once for each transport.
func containerPorts(listeners []conf.Listener) []*coreac.ContainerPortApplyConfiguration {
	var ports []*coreac.ContainerPortApplyConfiguration
	for _, l := range listeners {
		port := coreac.ContainerPort().WithContainerPort(l.Number).WithProtocol(l.Transport())
		if l.Name != "" {
			port.WithName(l.Name)
		}
		ports = append(ports, port)
	}
	return append(ports, coreac.ContainerPort().
		WithName(conf.AgentPortName).WithContainerPort(conf.AgentPort).WithProtocol(corev1.ProtocolTCP))
}

// canonical writes quantities as the API server stores them, so that what is
// wanted compares equal with what was applied.
func canonical(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		out[name] = resource.MustParse(q.String())
	}
	return out
}

func podSecurity(listeners []conf.Listener) *coreac.PodSecurityContextApplyConfiguration {
	security := coreac.PodSecurityContext().
		WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot).
		WithSeccompProfile(coreac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	for _, l := range listeners {
		if l.Number < privilegedPorts {
			return security.WithSysctls(coreac.Sysctl().WithName(unprivilegedPorts).WithValue("0"))
		}
	}
	return security
}

// apart prefers nodes that run no proxy of the split yet.
func apart(split *splitv1.TrafficSplit) *coreac.AffinityApplyConfiguration {
	term := coreac.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname)
	term.WithLabelSelector(selector(split))
	return coreac.Affinity().WithPodAntiAffinity(coreac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(
			coreac.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(term)))
}

func fieldEnv(name, path string) *coreac.EnvVarApplyConfiguration {
	return coreac.EnvVar().WithName(name).WithValueFrom(coreac.EnvVarSource().
		WithFieldRef(coreac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
}

func probe(path string) *coreac.ProbeApplyConfiguration {
	return coreac.Probe().WithTimeoutSeconds(2).WithHTTPGet(coreac.HTTPGetAction().
		WithPath(path).WithPort(intstr.FromInt32(conf.AgentPort)).WithScheme(corev1.URISchemeHTTP))
}

// waitingReason is what keeps a container from starting, in one line, or "".
func waitingReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" {
			return fmt.Sprintf("container %s: %s", c.Name, w.Reason)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "not scheduled: " + c.Message
		}
	}
	return ""
}

// refusal is why the pods of a Deployment can't be made, or "".
func refusal(live client.Object) string {
	d, ok := live.(*appsv1.Deployment)
	if !ok {
		return ""
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
