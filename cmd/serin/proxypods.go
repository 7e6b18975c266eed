// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic/nginx"
)

// proxyPodOptions are the flags of serin manager that say what the pods of the nginx
// router's proxies are like.
type proxyPodOptions struct {
	replicas, maxReplicas, targetCPU int32
	requests, limits                 map[string]string
	clusterRole, role, pullPolicy    string
	pullSecrets                      []string
	pods, autoscaling                string
	access                           accessOptions
}

func (o *proxyPodOptions) bind(flags *pflag.FlagSet) {
	flags.Int32Var(&o.replicas, "proxy-replicas", 2, "minimum number of proxies of each TrafficSplit, unless another actor scales their Deployment")
	flags.Int32Var(&o.maxReplicas, "proxy-max-replicas", 0, "maximum number of proxies of each TrafficSplit, whatever their load; 0: 10, or --proxy-replicas if that is more")
	flags.StringVar(&o.autoscaling, "proxy-autoscaling", "auto", "make a HorizontalPodAutoscaler for the proxies of each TrafficSplit: auto (where the cluster serves metrics.k8s.io when the manager starts), true or false")
	flags.StringVar(&o.pods, "proxy-pods", "", "further settings of the proxies' pods, as YAML or JSON with priorityClassName, nodeSelector, tolerations and annotations")
	flags.Int32Var(&o.targetCPU, "proxy-target-cpu", 80, "mean CPU use that the autoscaler aims at, in percent of the request")
	flags.StringToStringVar(&o.requests, "proxy-requests", nil, "resources that a proxy requests, such as cpu=50m,memory=96Mi; default: for a few thousand requests a second")
	flags.StringVar(&o.clusterRole, "proxy-cluster-role", nginx.DefaultClusterRole, "ClusterRole that proxies are bound to, each in its own namespace; the manager needs all of its rights")
	flags.StringVar(&o.role, "proxy-role", "", "Role, of each namespace with a TrafficSplit, that proxies are bound to instead of a ClusterRole; the manager needs all of its rights")
	flags.StringVar(&o.pullPolicy, "proxy-pull-policy", "", "when nodes pull the proxies' image: Always, IfNotPresent or Never; default: IfNotPresent")
	flags.StringSliceVar(&o.pullSecrets, "proxy-pull-secret", nil, "name of a Secret, in the namespace of each TrafficSplit, to pull the proxies' image with; can be repeated")
	o.access.bind(flags)
	flags.StringToStringVar(&o.limits, "proxy-limits", nil, "limits of a proxy's resources, such as memory=512Mi; they replace the default ones together with --proxy-requests")
}

// options are those of the nginx router. metrics is whether the cluster measures pods.
func (o *proxyPodOptions) options(image string, metrics bool) (nginx.Options, error) {
	out := nginx.Options{
		Image: image, ClusterRole: o.clusterRole, Role: o.role, Replicas: o.replicas, MaxReplicas: o.maxReplicas,
		PullPolicy: corev1.PullPolicy(o.pullPolicy),
	}
	var err error
	if out.Pods, err = o.parsePods(); err != nil {
		return out, fmt.Errorf("--proxy-pods: %w", err)
	}
	if o.replicas < 1 {
		return out, fmt.Errorf("--proxy-replicas: %d must be at least 1", o.replicas)
	}
	if known := []string{"", "Always", "IfNotPresent", "Never"}; !slices.Contains(known, o.pullPolicy) {
		return out, fmt.Errorf("--proxy-pull-policy: %q is not one of %q", o.pullPolicy, known[1:])
	}
	if known := []string{"auto", "true", "false"}; !slices.Contains(known, o.autoscaling) {
		return out, fmt.Errorf("--proxy-autoscaling: %q is not one of %q", o.autoscaling, known)
	}
	if o.autoscaling == "true" || o.autoscaling == "auto" && metrics {
		out.Autoscaling = &nginx.Autoscaling{CPUUtilization: o.targetCPU, IfPossible: o.autoscaling == "auto"}
	}
	if out.Access, err = o.access.options(); err != nil {
		return out, err
	}
	if out.Resources.Requests, err = quantities("--proxy-requests", o.requests); err != nil {
		return out, err
	}
	out.Resources.Limits, err = quantities("--proxy-limits", o.limits)
	return out, err
}

// parsePods reads what else the pods are to be.
func (o *proxyPodOptions) parsePods() (splitv1.ProxyPods, error) {
	var pods splitv1.ProxyPods
	if err := yaml.UnmarshalStrict([]byte(o.pods), &pods); err != nil {
		return pods, err
	}
	if pods.Replicas != nil || pods.MaxReplicas != nil || pods.Resources != nil || pods.ImagePullSecrets != nil {
		return pods, errors.New("give replicas, maxReplicas, resources and imagePullSecrets by --proxy-replicas, --proxy-max-replicas, --proxy-requests, --proxy-limits and --proxy-pull-secret")
	}
	pods.ImagePullSecrets = o.pullSecrets
	// Who installs the operator may have proxies be a part of the cluster, and has no bounds.
	return pods, pods.Valid()
}

// quantities reads resources by name; nil for none.
func quantities(flag string, values map[string]string) (corev1.ResourceList, error) {
	if len(values) == 0 {
		return nil, nil
	}
	known := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	list := corev1.ResourceList{}
	for name, value := range values {
		if !slices.Contains(known, corev1.ResourceName(name)) {
			return nil, fmt.Errorf("%s: %q is not one of %v", flag, name, known)
		}
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s: %s=%q is not a quantity; write it like cpu=50m or memory=96Mi", flag, name, value)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

// measuresPods is whether the cluster has what autoscalers go by, even if that does not answer now.
func measuresPods(mapper meta.RESTMapper) bool {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetrics"})
	return !meta.IsNoMatchError(err)
}
