// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration"
)

const (
	argoHead    = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: website, namespace: shop}\nspec:\n  selector: {matchLabels: {app: website}}\n  template: {metadata: {labels: {app: website}}, spec: {containers: [{name: a, image: b, ports: [{name: http, containerPort: 80}]}]}}\n"
	flaggerHead = "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: website, namespace: shop}\nspec:\n  provider: kubernetes\n  targetRef: {apiVersion: apps/v1, kind: Deployment, name: website}\n  service: {port: 80}\n"
)

// Each error names the file, the object, the field and the fix.
func TestAnInputThatIsNotUnderstoodIsAnError(t *testing.T) {
	tests := map[string]struct{ input, says string }{
		"a field that is misspelt": {
			argoHead + "  strategy: {canary: {stepps: [{setWeight: 10}]}}",
			"in.yaml: rollout.argoproj.io/shop/website: spec.strategy.canary.stepps[0].setWeight: is not a field that is known here: correct its name, or remove it",
		},
		"a step that is not known": {argoHead + "  strategy: {canary: {steps: [{setWieght: 10}]}}", "spec.strategy.canary.steps[0].setWieght: is not a field that is known here"},
		"no strategy":              {argoHead, "spec.strategy: needs exactly one of canary and blueGreen: remove or add one"},
		"two strategies":           {argoHead + "  strategy: {canary: {}, blueGreen: {activeService: a}}", "spec.strategy: needs exactly one of canary and blueGreen"},
		"a duration that is none":  {argoHead + "  strategy: {canary: {steps: [{setWeight: 1}, {pause: {duration: later}}]}}", `spec.strategy.canary.steps[1].pause.duration: "later" is not a duration`},
		"a weight that is none":    {argoHead + "  strategy: {canary: {steps: [{setWeight: lots}]}}", "spec.strategy.canary.steps[0].setWeight: lots is not a number"},
		"no active Service":        {argoHead + "  strategy: {blueGreen: {previewService: p}}", "spec.strategy.blueGreen.activeService: is missing: name the Service"},
		"a field of the pods":      {strings.Replace(argoHead, "image: b", "imagee: b", 1) + "  strategy: {canary: {}}", `spec.template: unknown field "spec.containers[0].imagee"`},
		"no pods":                  {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: website}\nspec: {strategy: {canary: {}}}", "rollout.argoproj.io/website: spec.template: is missing: a Rollout needs selector and template"},
		"another workload": {
			"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: website}\nspec: {workloadRef: {apiVersion: apps/v1, kind: ReplicaSet, name: a}, strategy: {canary: {}}}",
			`spec.workloadRef.kind: is "ReplicaSet": Serin releases Deployments, so write one and name it`,
		},
		"a long name":     {strings.Replace(argoHead, "name: website,", "name: "+strings.Repeat("w", 53)+",", 1) + "  strategy: {canary: {}}", "metadata.name: has 53 characters: the name of a Rollout has at most 52"},
		"two providers":   {"apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: a}\nspec: {metrics: [{name: m, provider: {web: {}, job: {}}}]}", "spec.metrics[0].provider: needs exactly one provider"},
		"another version": {"apiVersion: argoproj.io/v1\nkind: Rollout\nmetadata: {name: website}\nspec: {}", `apiVersion: is "argoproj.io/v1": only argoproj.io/v1alpha1 is known`},
		"nothing at all":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "nothing to migrate"},
		"two Services for one Rollout": {
			argoHead + "  strategy: {canary: {}}\n---\n" + serviceOf("one") + "---\n" + serviceOf("two"),
			"spec.strategy.canary.stableService: is missing, and 2 Services select the pods ([one two]): name the one that clients call here",
		},
		"a header that can't be matched": {
			argoHead + "  strategy: {canary: {steps: [{setHeaderRoute: {name: a, match: [{headerName: x, headerValue: {exact: a, regex: b}}]}}]}}",
			"spec.strategy.canary.steps[0].setHeaderRoute.match[0].headerValue: needs exactly one of exact, prefix, suffix and regex",
		},

		"a DaemonSet":                     {strings.Replace(flaggerHead, "kind: Deployment", "kind: DaemonSet", 1) + "  analysis: {}", `in.yaml: canary.flagger.app/shop/website: spec.targetRef.kind: is "DaemonSet": Serin releases Deployments`},
		"a provider that is not known":    {strings.Replace(flaggerHead, "provider: kubernetes", "provider: kubernets", 1) + "  analysis: {}", `spec.provider: is "kubernets", which is not a provider`},
		"a field of Flagger, misspelt":    {flaggerHead + "  analysis: {intervall: 1m, stepWeight: 5}", "spec.analysis.intervall: is not a field that is known here"},
		"no analysis":                     {flaggerHead, "spec.analysis: is missing: say how a release goes on"},
		"the old name of the analysis":    {flaggerHead + "  canaryAnalysis: {interval: 1m}", "spec.canaryAnalysis: is the old name of analysis: rename it"},
		"a template that was not given":   {flaggerHead + "  analysis: {metrics: [{name: a, templateRef: {name: t, namespace: flagger}, thresholdRange: {max: 1}}]}", "spec.analysis.metrics[0].templateRef.name: the MetricTemplate t in the namespace flagger was not given: give its file too"},
		"a metric without a limit":        {flaggerHead + "  analysis: {metrics: [{name: a, query: b}]}", "spec.analysis.metrics[0].thresholdRange: is missing: write min or max"},
		"an alert that was not given":     {flaggerHead + "  analysis: {alerts: [{name: a, providerRef: {name: p}}]}", "the AlertProvider p was not given"},
		"a webhook of another type":       {flaggerHead + "  analysis: {webhooks: [{name: a, type: sometimes, url: 'http://a'}]}", `spec.analysis.webhooks[0].type: is "sometimes", which is not a type`},
		"weights that go down":            {flaggerHead + "  analysis: {stepWeights: [10, 5]}", "spec.analysis.stepWeights[1]: is less than the weight before, 10"},
		"requests that can't be matched":  {flaggerHead + "  analysis: {iterations: 1, match: [{sourceLabels: {a: b}}]}", "spec.analysis.match[0].sourceLabels: can't be a condition of an HTTPRouteGroup"},
		"an expression for some only":     {flaggerHead + "  analysis: {iterations: 1, match: [{headers: {a: {regex: '(?P<n>a)'}}}]}", "spec.analysis.match[0].headers.a.regex: can't be a condition"},
		"a variable that is not there":    {flaggerHead + "  analysis: {metrics: [{name: a, query: 'x{a=\"{{ nosuch }}\"}', thresholdRange: {max: 1}}]}", "names {{ nosuch }}, which is not one of"},
		"a Canary without a port":         {strings.Replace(flaggerHead, "service: {port: 80}", "service: {}", 1) + "  analysis: {}", "spec.service.port: is missing"},
		"a success rate above all bounds": {flaggerHead + "  analysis: {metrics: [{name: request-success-rate, thresholdRange: {min: 999}}]}", "spec.analysis.metrics[0].thresholdRange.min: 999 is not a percentage"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := migration.Convert(read(t, "in.yaml", test.input))
			if err == nil || !strings.Contains(err.Error(), test.says) || len(out) > 0 {
				t.Errorf("got %v, %v\nwant %q", out, err, test.says)
			}
		})
	}
}

func serviceOf(name string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: shop}\nspec: {selector: {app: website}, ports: [{port: 80}]}\n"
}
