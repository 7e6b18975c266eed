// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic/nginx"
)

func TestFlagsOfTheProxiesPods(t *testing.T) {
	many := map[string]splitv1.AnnotationValue{"Example.com/long": splitv1.AnnotationValue(strings.Repeat("x", 4097))}
	for i := range 16 {
		many[fmt.Sprint("a", i)] = "b"
	}
	text, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	annotations := string(text)
	for name, test := range map[string]struct {
		args    []string
		metrics bool
		want    nginx.Options
		err     string
	}{
		"nothing is said": {want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2}},
		"an autoscaler with resources": {
			args: []string{"--proxy-cluster-role=shop-serin-proxy", "--proxy-replicas=3", "--proxy-max-replicas=9", "--proxy-autoscaling=true", "--proxy-target-cpu=60", "--proxy-requests=cpu=1,memory=128Mi", "--proxy-limits=memory=1Gi"},
			want: nginx.Options{
				Image: "i", ClusterRole: "shop-serin-proxy", Replicas: 3, MaxReplicas: 9, Autoscaling: &nginx.Autoscaling{CPUUtilization: 60},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
			},
		},
		"an image that needs a Secret": {
			args: []string{"--proxy-pull-policy=Always", "--proxy-pull-secret=a", "--proxy-pull-secret=b"},
			want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, PullPolicy: corev1.PullAlways, Pods: splitv1.ProxyPods{ImagePullSecrets: []string{"a", "b"}}},
		},
		"the cluster measures pods": {
			metrics: true,
			want:    nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, Autoscaling: &nginx.Autoscaling{CPUUtilization: 80, IfPossible: true}},
		},
		"no autoscaler is wanted": {
			args: []string{"--proxy-autoscaling=false"}, metrics: true, want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2},
		},
		"pods of a class of their own": {
			args: []string{`--proxy-pods={"priorityClassName":"edge","nodeSelector":{"pool":"edge"},"tolerations":[{"key":"edge","operator":"Exists"}],"annotations":{"a.b/c":"d"}}`},
			want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, Pods: splitv1.ProxyPods{
				PriorityClassName: "edge", NodeSelector: map[string]splitv1.LabelValue{"pool": "edge"},
				Tolerations: []splitv1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}}, Annotations: map[string]splitv1.AnnotationValue{"a.b/c": "d"},
			}},
		},
		"an autoscaling that is none": {args: []string{"--proxy-autoscaling=on"}, err: `--proxy-autoscaling: "on" is not one of`},
		"pods with a field too many":  {args: []string{"--proxy-pods={image: a}"}, err: `--proxy-pods: `},
		"pods with labels":            {args: []string{"--proxy-pods={labels: {a: b}}"}, err: "--proxy-pods: "},
		"pods with replicas":          {args: []string{"--proxy-pods={replicas: 3}"}, err: "--proxy-replicas"},
		"pods with a most":            {args: []string{"--proxy-pods={maxReplicas: 3}"}, err: "--proxy-max-replicas"},
		"pods with resources":         {args: []string{"--proxy-pods={resources: {limits: {memory: 1Gi}}}"}, err: "--proxy-limits"},
		"pods of the cluster": {
			args: []string{"--proxy-pods={priorityClassName: system-cluster-critical}"},
			want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, Pods: splitv1.ProxyPods{PriorityClassName: "system-cluster-critical"}},
		},
		// The operator's values have no bounds.
		"many annotations and tolerations": {
			args: []string{"--proxy-pods={annotations: " + annotations + ", tolerations: [" + strings.Repeat("{operator: Exists}, ", 17) + "]}", "--proxy-pull-secret=a", "--proxy-pull-secret=a"},
			want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, Pods: splitv1.ProxyPods{
				Annotations: many, Tolerations: slices.Repeat([]splitv1.Toleration{{Operator: corev1.TolerationOpExists}}, 17), ImagePullSecrets: []string{"a", "a"},
			}},
		},
		"an annotation of Serin's":       {args: []string{"--proxy-pods={annotations: {serin.dev/a: b}}"}, err: `--proxy-pods: annotations: only Serin sets "serin.dev/a"`},
		"pods of a class without a name": {args: []string{"--proxy-pods={priorityClassName: a b}"}, err: `--proxy-pods: priorityClassName: "a b" is not the name`},
		"pods with a wrong toleration": {
			args: []string{"--proxy-pods={tolerations: [{key: a, operator: In}]}"}, err: `--proxy-pods: tolerations[0]: the operator "In" is neither Equal nor Exists`,
		},
		"a pull policy that is none": {args: []string{"--proxy-pull-policy=never"}, err: `--proxy-pull-policy: "never" is not one of ["Always" "IfNotPresent" "Never"]`},
		"NetworkPolicies": {
			args: []string{`--proxy-readers=[{"podSelector":{"matchLabels":{"app":"prometheus"}}}]`, "--restrict-proxy-readers=shop", "--api-server-network=10.0.0.1/32", "--api-server-port=6443"},
			want: nginx.Options{Image: "i", ClusterRole: "serin-proxy", Replicas: 2, Access: nginx.Access{
				Readers:    []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "prometheus"}}}},
				Restricted: []string{"shop"}, APIServerPorts: []int32{6443},
				APIServer: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.1/32"}}},
			}},
		},
		"readers that are no peers": {args: []string{"--proxy-readers=[{pods: all}]"}, err: "--proxy-readers: \"[{pods: all}]\" is not a list of peers of a NetworkPolicy"},
		"a network that is none":    {args: []string{"--api-server-network=10.0.0.1"}, err: `--api-server-network: "10.0.0.1" is not a network`},
		"a port that is none":       {args: []string{"--api-server-port=0"}, err: "--api-server-port: 0 must be between 1 and 65535"},
		"no proxy":                  {args: []string{"--proxy-replicas=0"}, err: "--proxy-replicas: 0 must be at least 1"},
		"a quantity that is none":   {args: []string{"--proxy-requests=cpu=much"}, err: `--proxy-requests: cpu="much" is not a quantity`},
		"a quantity below zero":     {args: []string{"--proxy-limits=memory=-1"}, err: `memory="-1" is not a quantity`},
		"a resource without a name": {args: []string{"--proxy-limits=disk=1"}, err: `--proxy-limits: "disk" is not one of`},
	} {
		t.Run(name, func(t *testing.T) {
			var o proxyPodOptions
			flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			got, err := o.options("i", test.metrics)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
