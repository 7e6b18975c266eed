// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
)

// everySetting is each field of proxyPods.
const everySetting = `proxyPods:
  replicas: 4
  maxReplicas: 20
  resources: {requests: {cpu: 200m}, limits: {memory: 1Gi}}
  priorityClassName: edge
  nodeSelector: {pool: edge}
  tolerations: [{key: edge, operator: Exists, effect: NoSchedule}, {key: edge, value: web, effect: NoExecute, tolerationSeconds: 30}]
  labels: {example.com/cost-centre: "4711"}
  annotations: {a: b}
  imagePullSecrets: [mine, ours]
`

func shopTargetWith(routing string) traffic.Target {
	target := shopTarget()
	target.Split.Annotations = map[string]string{splitv1.AnnotationRouting: routing}
	return target
}

// operatorsPods are what an operator gives to all proxies, none of which is unset.
func operatorsPods(o *Options) {
	o.Autoscaling, o.Replicas, o.MaxReplicas = &Autoscaling{CPUUtilization: 80}, 2, 10
	o.Pods = splitv1.ProxyPods{
		PriorityClassName: "all", NodeSelector: map[string]splitv1.LabelValue{"pool": "all"},
		Tolerations:      []splitv1.Toleration{{Key: "all", Operator: corev1.TolerationOpExists}},
		Annotations:      map[string]splitv1.AnnotationValue{"a": "all", "c": "d"},
		ImagePullSecrets: []string{"all"},
	}
}

// What a split says of its proxies takes the place of what the operator says, field by field, and
// changes nothing else of them. With -update, the file is what is made.
func TestHowTheProxiesOfOneSplitRun(t *testing.T) {
	for routing, file := range map[string]string{
		"":                                     "operators",
		"proxyPods: {}":                        "operators",
		"proxyPods: {priorityClassName: edge}": "priority",
		everySetting:                           "own",
	} {
		t.Run(file, func(t *testing.T) {
			target := shopTargetWith(routing)
			r, _ := testRouter(t, interceptor.Funcs{})
			operatorsPods(&r.options)
			options, problems, err := r.optionsOf(t.Context(), target)
			must(t, err)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var text strings.Builder
			for _, p := range pieces() {
				if p.gvk.Kind != "Deployment" && p.gvk.Kind != "HorizontalPodAutoscaler" {
					continue
				}
				wanted, err := p.wanted(target, settings{Options: options, account: "2f6a"})
				must(t, err)
				out, err := yaml.Marshal(wanted.Object)
				must(t, err)
				text.WriteString("---\n" + string(out))
			}
			golden.Check(t, filepath.Join("testdata", "pods-"+file+".yaml"), text.String())
			if len(r.options.Pods.Annotations) != 2 || r.options.Pods.Annotations["a"] != "all" {
				t.Error("the annotations of one split became those of all")
			}
		})
	}
}

func TestHowManyProxiesOneSplitMayHave(t *testing.T) {
	for text, want := range map[string][2]int32{
		"{}":                            {2, 10},
		"{replicas: 4}":                 {4, 10},
		"{replicas: 12}":                {12, 12},
		"{maxReplicas: 20}":             {2, 20},
		"{maxReplicas: 1}":              {1, 1},
		"{replicas: 3, maxReplicas: 5}": {3, 5},
	} {
		r := &Router{options: routerOptions(t)}
		options, problems, err := r.optionsOf(t.Context(), shopTargetWith("proxyPods: "+text))
		must(t, err)
		if got := [2]int32{options.Replicas, options.MaxReplicas}; got != want || len(problems) > 0 {
			t.Errorf("%s: %v to %v proxies, want %v", text, got[0], got[1], want)
		}
	}
}

func TestWhatProxiesCanNotBeRefusesTheSplit(t *testing.T) {
	for text, says := range map[string]string{
		"replicas: 0":                                       "replicas: 0 is not from 1 to 1000",
		"labels: {serin.dev/proxy: other}":                  "labels: only Serin sets",
		"resources: {requests: {cpu: 2}, limits: {cpu: 1}}": "resources: requests more cpu than its limit",
		// The keys of the root Service's selector and of a backend's.
		"labels: {tier: back}": `labels: "tier" is a key of the selector of Service "web", which must not find proxies; remove it`,
		"labels: {version: x}": `labels: "version" is a key of the selector of Service "web-stable"`,
	} {
		target := shopTargetWith("proxyPods: {" + text + "}")
		r, api := testRouter(t, interceptor.Funcs{})
		stable := target.Root.DeepCopy()
		stable.Name, stable.Spec.Selector = "web-stable", map[string]string{"version": "1"}
		must(t, api.Create(t.Context(), stable))
		state, err := r.Observe(t.Context(), target)
		must(t, err)
		if len(state.Problems) != 1 || !strings.HasPrefix(state.Problems[0].Message, traffic.FieldProxyPods+"."+says) || !traffic.Refused(state.Problems) {
			t.Errorf("%s: %+v, want %q", text, state.Problems, says)
		}
	}
}

// A policy that selects pods by a label which a split gives to its proxies isolates them, so they
// need one of Serin's.
func TestAPolicyFindsProxiesByTheLabelsThatASplitGivesThem(t *testing.T) {
	for routing, want := range map[string]int{"": 0, "proxyPods: {labels: {team: checkout}}": 1, "proxyPods: {labels: {team: search}}": 0} {
		r, api := testRouter(t, interceptor.Funcs{})
		must(t, api.Create(t.Context(), &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "shop"},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "checkout"}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			},
		}))
		target := shopTargetWith(routing)
		target.Asked = true
		state, err := r.Observe(t.Context(), target)
		must(t, err)
		made := 0
		for _, o := range state.Objects {
			if o.Kind == "NetworkPolicy" {
				made++
			}
		}
		if made != want || len(state.Problems) > 0 {
			t.Errorf("%q: %d policies, want %d; %v", routing, made, want, state.Problems)
		}
	}
}
