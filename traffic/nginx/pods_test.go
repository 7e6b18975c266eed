// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
			options, problems := r.optionsOf(target.Split)
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
		options, problems := r.optionsOf(shopTargetWith("proxyPods: " + text).Split)
		if got := [2]int32{options.Replicas, options.MaxReplicas}; got != want || len(problems) > 0 {
			t.Errorf("%s: %v to %v proxies, want %v", text, got[0], got[1], want)
		}
	}
}

func TestWhatProxiesCanNotBeRefusesTheSplit(t *testing.T) {
	for text, says := range map[string]string{
		"replicas: 0":                                       "replicas: 0 is not from 1 to 1000",
		"annotations: {serin.dev/proxy: other}":             "annotations: only Serin sets",
		"resources: {requests: {cpu: 2}, limits: {cpu: 1}}": "resources: requests more cpu than its limit",
	} {
		target := shopTargetWith("proxyPods: {" + text + "}")
		r, _ := testRouter(t, interceptor.Funcs{})
		state, err := r.Observe(t.Context(), target)
		must(t, err)
		if len(state.Problems) != 1 || !strings.HasPrefix(state.Problems[0].Message, traffic.FieldProxyPods+"."+says) || !traffic.Refused(state.Problems) {
			t.Errorf("%s: %+v, want %q", text, state.Problems, says)
		}
	}
}
