// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// rolloutWith is a Rollout whose spec has the given lines instead of a workload and
// steps.
func rolloutWith(lines string) string {
	return "apiVersion: serin.dev/v1alpha1\nkind: Rollout\nmetadata: {name: website}\nspec:\n  service: website\n" +
		"  " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n  ") + "\n"
}

const (
	deploymentRef = "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: website}\n"
	oneStep       = "strategy: {steps: [{weight: 10}]}\n"
)

func TestEveryStrategyAndSettingIsAccepted(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"two Services":   "services: {stable: website-v1, canary: website-v2}\n" + oneStep,
		"CanaryRelease":  "workloadRef: {apiVersion: serin.dev/v1alpha1, kind: CanaryRelease, name: try}\n" + oneStep,
		"a ramp":         deploymentRef + "strategy: {ramp: {from: 5, to: 80, every: 1m, by: 5}}",
		"a factor":       deploymentRef + `strategy: {ramp: {every: 1m, times: "1.5"}}`,
		"blue-green":     deploymentRef + "strategy: {type: BlueGreen, blueGreen: {hold: 5m, until: Manual, scaleDownDelay: 10m}}",
		"a preview":      deploymentRef + "strategy: {type: BlueGreen, blueGreen: {previewService: website-preview}}",
		"an A/B test":    deploymentRef + "strategy: {type: ABTest, steps: [{weight: 100, matches: [testers], hold: 1h}]}",
		"matches first":  deploymentRef + "strategy: {steps: [{weight: 100, matches: [testers]}, {weight: 10}]}",
		"a mirror":       deploymentRef + "strategy: {steps: [{weight: 0, mirror: 20, hold: 5m}, {weight: 10}]}",
		"pods":           deploymentRef + "strategy: {steps: [{weight: 10, canaryReplicas: 3}, {weight: 20, canaryReplicas: 50%}]}",
		"an hour":        deploymentRef + `strategy: {steps: [{weight: 10}, {weight: 50, at: "0 9 * * MON-FRI"}]}`,
		"pause, slowly":  deploymentRef + "strategy: {onFailure: Pause, rollBackOver: 5m, steps: [{weight: 10}]}",
		"an override":    deploymentRef + "strategy: {steps: [{weight: 10, analysis: {minRequests: 10, tolerance: 2pp, onInconclusive: Promote}}]}",
		"a decision":     deploymentRef + oneStep + "control: {revision: 6c8f9d7b5, action: Promote, stepIndex: 0, reason: looked at it}",
		"a hook":         deploymentRef + oneStep + "hooks: [{name: tests, when: BeforeStep, endpoint: {url: https://ci.example/hook}, timeout: 10m}]",
		"a notification": deploymentRef + oneStep + "notifications: [{name: chat, format: Slack, events: [RolledBack], endpoint: {url: https://chat.example/x}}]",
		"proxies": deploymentRef + oneStep + "proxyPods: {replicas: 3, maxReplicas: 20, resources: {requests: {cpu: 1, memory: 96Mi, ephemeral-storage: 0}, limits: {memory: 1Gi}}, priorityClassName: high, " +
			"nodeSelector: {node-role.kubernetes.io/edge: ''}, tolerations: [{operator: Exists}, {key: example.com/edge, value: web, effect: NoExecute, tolerationSeconds: 30}], " +
			"annotations: {a: 'b c', notserin.dev/a: b}, imagePullSecrets: [registry]}",
		"a way back": deploymentRef + oneStep + "rollbackWindow: {revisions: 3}\nhistoryLimit: 20\nrouter: none",
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), rolloutWith(spec)); err != nil {
				t.Error(err)
			}
		})
	}
}

// proxiesThatCanNotBe are refused by the schema of a Rollout, with what it says, and by what
// checks the annotation of a TrafficSplit.
var proxiesThatCanNotBe = map[string]string{
	"replicas: 0":                                           "spec.proxyPods.replicas",
	"maxReplicas: 1001":                                     "spec.proxyPods.maxReplicas",
	"replicas: 3, maxReplicas: 2":                           "replicas: is above maxReplicas; lower it, or raise maxReplicas",
	"resources: {limits: {gpu: 1}}":                         "limits: a proxy has cpu, memory and ephemeral-storage; remove the others",
	"resources: {requests: {gpu: 1}}":                       "requests: a proxy has cpu, memory and ephemeral-storage; remove the others",
	"resources: {requests: {cpu: -1}}":                      "requests: a quantity is below 0, or that of cpu is 0; correct it",
	"resources: {requests: {cpu: 0m}}":                      "requests: a quantity is below 0, or that of cpu is 0; correct it",
	"resources: {limits: {memory: -1Gi}}":                   "limits: a quantity is not above 0; correct it",
	"resources: {limits: {cpu: 0}}":                         "limits: a quantity is not above 0; correct it",
	"resources: {limits: {memory: 0Mi}}":                    "limits: a quantity is not above 0; correct it",
	"annotations: {Example.com/a: b}":                       "annotations: a key is not that of an annotation; write <name> or <domain>/<name>",
	"resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}": "requests: is above a limit; lower it, or raise the limit",
	"priorityClassName: A":                                  "spec.proxyPods.priorityClassName",
	"priorityClassName: system-node-critical":               "priorityClassName: classes whose names begin with system- are for parts of the cluster; name another one",
	`nodeSelector: {"a b": c}`:                              "nodeSelector: a key is not that of a label; write <name> or <domain>/<name>",
	`nodeSelector: {a: "b c"}`:                              "spec.proxyPods.nodeSelector.a",
	`annotations: {"": a}`:                                  "annotations: a key is not that of an annotation; write <name> or <domain>/<name>",
	"annotations: {serin.dev/x: a}":                         "annotations: only Serin sets annotations of serin.dev; remove them",
	"imagePullSecrets: [A]":                                 "spec.proxyPods.imagePullSecrets[0]",
	"imagePullSecrets: [a, a]":                              "spec.proxyPods.imagePullSecrets[1]: Duplicate value",
	"tolerations: [{}]":                                     "tolerations: without a key the operator has to be Exists; give a key, or write Exists",
	"tolerations: [{key: a, operator: In}]":                 "spec.proxyPods.tolerations[0].operator",
	"tolerations: [{key: a, effect: Never}]":                "spec.proxyPods.tolerations[0].effect",
	"tolerations: [{key: a b}]":                             "spec.proxyPods.tolerations[0].key",
	"tolerations: [{key: a, value: b c}]":                   "spec.proxyPods.tolerations[0].value",
	"tolerations: [{operator: Exists, value: b}]":           "tolerations: the operator Exists takes no value; remove it, or write Equal",
	"tolerations: [{key: a, tolerationSeconds: 1}]":         "tolerations: tolerationSeconds takes the effect NoExecute; write that, or remove tolerationSeconds",
}

func TestProxiesThatCanNotBeAreRefusedInARolloutAsInATrafficSplit(t *testing.T) {
	t.Parallel()
	for pods, want := range proxiesThatCanNotBe {
		t.Run(pods, func(t *testing.T) {
			if err := dryRun(t.Context(), rolloutWith(deploymentRef+oneStep+"proxyPods: {"+pods+"}")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
			split := &splitv1.TrafficSplit{}
			split.Annotations = map[string]string{splitv1.AnnotationRouting: "proxyPods: {" + pods + "}"}
			routing, err := splitv1.RoutingOf(split)
			if err != nil || routing.ProxyPods.Check() == nil {
				t.Errorf("a split with it is taken: %v", err)
			}
		})
	}
	for pods, want := range map[string]string{
		"image: a":                  `unknown field "spec.proxyPods.image"`,
		"serviceAccountName: admin": `unknown field "spec.proxyPods.serviceAccountName"`,
		"hostNetwork: true":         `unknown field "spec.proxyPods.hostNetwork"`,
		"volumes: []":               `unknown field "spec.proxyPods.volumes"`,
		"securityContext: {}":       `unknown field "spec.proxyPods.securityContext"`,
	} {
		if err := dryRun(t.Context(), rolloutWith(deploymentRef+oneStep+"proxyPods: {"+pods+"}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", pods, err, want)
		}
	}
}

func TestWhatContradictsItselfIsRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spec, want string }{
		"neither workload nor Services": {oneStep, "needs exactly one of workloadRef and services; remove or add one"},
		"workload and Services":         {deploymentRef + oneStep + "services: {stable: a, canary: b}", "needs exactly one of workloadRef and services"},
		"one Service twice":             {oneStep + "services: {stable: a, canary: a}", "stable and canary must be two Services"},
		"a StatefulSet":                 {"workloadRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}\n" + oneStep, "only Deployment and CanaryRelease are supported; the controllers of other kinds, such as StatefulSet and DaemonSet, replace pods in place"},
		"a DaemonSet":                   {"workloadRef: {apiVersion: apps/v1, kind: DaemonSet, name: logs}\n" + oneStep, "only Deployment and CanaryRelease are supported"},
		"a CanaryRelease of apps/v1":    {"workloadRef: {apiVersion: apps/v1, kind: CanaryRelease, name: try}\n" + oneStep, "write serin.dev/v1alpha1 for a CanaryRelease"},
		"another version of the API":    {"workloadRef: {apiVersion: apps/v2, kind: Deployment, name: web}\n" + oneStep, "only apps/v1 is supported; write apps/v1"},
		"steps and a ramp":              {deploymentRef + "strategy: {steps: [{weight: 10}], ramp: {every: 1m, by: 5}}", "steps, ramp and blueGreen exclude each other; keep one of them"},
		"nothing to do":                 {deploymentRef + "strategy: {type: Canary}", "need steps (or ramp, for Canary)"},
		"blue-green with steps":         {deploymentRef + "strategy: {type: BlueGreen, steps: [{weight: 10}]}", "the type BlueGreen takes blueGreen instead"},
		"a preview of two Services":     {"services: {stable: a, canary: b}\nstrategy: {type: BlueGreen, blueGreen: {previewService: preview}}", "spec.strategy.blueGreen.previewService: needs a workloadRef of the kind Deployment; with spec.services, the canary's Service is the preview; remove it"},
		"a preview of a CanaryRelease":  {"workloadRef: {apiVersion: serin.dev/v1alpha1, kind: CanaryRelease, name: try}\nstrategy: {type: BlueGreen, blueGreen: {previewService: preview}}", "needs a workloadRef of the kind Deployment"},
		"the root Service as preview":   {deploymentRef + "strategy: {type: BlueGreen, blueGreen: {previewService: website}}", "must be another Service than spec.service and than '<service>-stable' and '<service>-canary', which Serin makes; name another one"},
		"Serin's Service as preview":    {deploymentRef + "strategy: {type: BlueGreen, blueGreen: {previewService: website-canary}}", "must be another Service than spec.service"},
		"an A/B test without matches":   {deploymentRef + "strategy: {type: ABTest, steps: [{weight: 10}]}", "every step of the type ABTest needs matches"},
		"matches at the end":            {deploymentRef + "strategy: {steps: [{weight: 10}, {weight: 50, matches: [testers]}]}", "steps with matches must come before those without"},
		"points and a factor":           {deploymentRef + `strategy: {ramp: {every: 1m, by: 5, times: "2"}}`, "needs exactly one of by (points) and times (a factor)"},
		"a ramp downwards":              {deploymentRef + "strategy: {ramp: {from: 50, to: 10, every: 1m, by: 5}}", "from must not be greater than to; swap them"},
		"no share of pods":              {deploymentRef + "strategy: {steps: [{weight: 10, canaryReplicas: 101%}]}", "spec.strategy.steps[0].canaryReplicas"},
		"an hour that is none":          {deploymentRef + `strategy: {steps: [{weight: 10, at: "at nine"}]}`, "spec.strategy.steps[0].at"},
		"an unknown decision":           {deploymentRef + oneStep + "control: {revision: abc, action: Approve}", "spec.control.action"},
		"a decision about nothing":      {deploymentRef + oneStep + "control: {action: Promote}", "spec.control.revision"},
		"a hook by another protocol":    {deploymentRef + oneStep + "hooks: [{name: x, when: Gate, endpoint: {url: ftp://example/x}}]", "spec.hooks[0].endpoint.url"},
		"a password in an address":      {deploymentRef + oneStep + "hooks: [{name: x, when: Gate, endpoint: {url: https://u:p@example/x}}]", "spec.hooks[0].endpoint.url"},
		"a hook that is never called":   {deploymentRef + oneStep + "hooks: [{name: x, endpoint: {url: https://example/x}}]", "spec.hooks[0].when"},
		"too long a window back":        {deploymentRef + oneStep + "rollbackWindow: {revisions: 11}", "spec.rollbackWindow.revisions"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), rolloutWith(c.spec)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
