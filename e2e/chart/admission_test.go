// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/version"
	apiadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/controllers/admission"
)

const (
	policiesV1      = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	policiesV1beta1 = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
	operator        = "system:serviceaccount:serin-system:serin"
)

// compiler compiles the expressions of a policy as an API server of some version does when the
// policy is written to it.
type compiler struct {
	*plugincel.CompositedCompiler
	options plugincel.OptionalVariableDeclarations
	mode    environment.Type
}

func newCompiler(t *testing.T, minor uint, variables []admissionv1.Variable, mutates bool) compiler {
	t.Helper()
	base, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, minor)))
	if err != nil {
		t.Fatal(err)
	}
	c := compiler{base, plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: mutates}, environment.NewExpressions}
	for _, v := range variables {
		if r := base.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, c.options, c.mode); r.Error != nil {
			t.Errorf("Kubernetes 1.%d: variable %s: %v", minor, v.Name, r.Error)
		}
	}
	return c
}

// conditions are those under which a policy or webhook looks at a write.
func (c compiler) conditions(t *testing.T, list []admissionv1.MatchCondition) plugincel.ConditionEvaluator {
	t.Helper()
	var expressions []plugincel.ExpressionAccessor
	for i := range list {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&list[i]))
	}
	compiled := c.CompileCondition(expressions, c.options, c.mode)
	for _, err := range compiled.CompilationErrors() {
		t.Error(err)
	}
	return compiled
}

func (c compiler) patcher(t *testing.T, m admissionv1.Mutation) patch.Patcher {
	t.Helper()
	if m.PatchType == admissionv1.PatchTypeApplyConfiguration {
		compiled := c.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, c.options, c.mode)
		for _, err := range compiled.CompilationErrors() {
			t.Error(err)
		}
		return patch.NewApplyConfigurationPatcher(compiled)
	}
	compiled := c.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, c.options, c.mode)
	for _, err := range compiled.CompilationErrors() {
		t.Error(err)
	}
	return patch.NewJSONPatcher(compiled)
}

// decode reads the objects of a kind.
func decode[T any](t *testing.T, text, kind string) map[string]T {
	t.Helper()
	found := map[string]T{}
	for name, document := range objects(t, text, kind) {
		var o T
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
		found[name] = o
	}
	return found
}

// An API server refuses a policy or webhook with a function that its version lacks.
func TestExpressionsAreKnownToTheOldestKubernetesThatEvaluatesThem(t *testing.T) {
	t.Parallel()
	const oldest, oldestV1beta1 = 31, 34
	text, err := render(t, "admission: {mode: webhook}")
	if err != nil {
		t.Fatal(err)
	}
	validate := decode[admissionv1.ValidatingAdmissionPolicy](t, text, "ValidatingAdmissionPolicy")
	for _, p := range validate {
		c := newCompiler(t, oldest, p.Spec.Variables, false)
		c.conditions(t, p.Spec.MatchConditions)
		for _, v := range p.Spec.Validations {
			for _, r := range []plugincel.CompilationResult{
				c.CompileCELExpression(&validating.ValidationCondition{Expression: v.Expression}, c.options, c.mode),
				c.CompileCELExpression(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, plugincel.OptionalVariableDeclarations{}, c.mode),
			} {
				if r.Error != nil && r.ExpressionAccessor.GetExpression() != "" {
					t.Errorf("%s: %v", p.Name, r.Error)
				}
			}
		}
	}
	webhooks := decode[admissionv1.MutatingWebhookConfiguration](t, text, "MutatingWebhookConfiguration")
	for _, w := range webhooks["serin-webhooks"].Webhooks {
		newCompiler(t, oldest, nil, false).conditions(t, w.MatchConditions)
	}
	if text, err = render(t, "", policiesV1beta1); err != nil {
		t.Fatal(err)
	}
	mutate := decode[admissionv1.MutatingAdmissionPolicy](t, text, "MutatingAdmissionPolicy")
	for _, p := range mutate {
		c := newCompiler(t, oldestV1beta1, p.Spec.Variables, true)
		c.conditions(t, p.Spec.MatchConditions)
		for _, m := range p.Spec.Mutations {
			c.patcher(t, m)
		}
	}
	if len(validate) < 5 || len(webhooks["serin-webhooks"].Webhooks) != 4 || len(mutate) != 4 {
		t.Errorf("%d policies that validate, %d webhooks, %d policies that mutate", len(validate), len(webhooks["serin-webhooks"].Webhooks), len(mutate))
	}
}

// Each mode has its objects, and the manager's rights fit them.
func TestTheModeOfAdmissionFollowsWhatTheClusterServes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		serves []string
		mode   string
	}{
		"nothing":                      {mode: "webhook"},
		"v1beta1":                      {serves: []string{policiesV1beta1}, mode: "policies-v1beta1"},
		"both":                         {serves: []string{policiesV1beta1, policiesV1}, mode: "policies"},
		"a value goes before":          {values: "admission: {mode: webhook}", serves: []string{policiesV1}, mode: "webhook"},
		"a value of what is not known": {values: "admission: {mode: policies}", mode: "policies"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := render(t, test.values, test.serves...)
			if err != nil {
				t.Fatal(err)
			}
			webhook := test.mode == "webhook"
			for _, object := range []struct {
				kind, name, has string
				there           bool
			}{
				{"Deployment", "serin-manager", "- --admission-mode=" + test.mode + "\n", true},
				{"Deployment", "serin-manager", "preStop: {sleep: {seconds: 5}}", webhook},
				{"Deployment", "serin-manager", "- --webhook-certificate-secret=serin-webhooks\n", webhook},
				{"MutatingWebhookConfiguration", "serin-webhooks", "failurePolicy: Fail", webhook},
				{"Service", "serin-webhooks", "targetPort: webhooks", webhook},
				{"Secret", "serin-webhooks", "type: Opaque", webhook},
				{"Role", "serin-webhooks", "resourceNames: [serin-webhooks]\n    verbs: [get, patch]", webhook},
				{"ClusterRole", "serin-admission", "resources: [mutatingwebhookconfigurations]\n    resourceNames: [serin-webhooks]\n    verbs: [patch]", webhook},
				{"ClusterRole", "serin-admission", "mutatingadmissionpolicybindings", !webhook},
				{"MutatingAdmissionPolicy", "serin-hold-deployments", "failurePolicy: Fail", !webhook},
				{"MutatingAdmissionPolicy", "serin-decided-by", "failurePolicy: Fail", !webhook},
				{"MutatingAdmissionPolicy", "serin-configuration", "failurePolicy: Fail", !webhook},
			} {
				if got := objects(t, text, object.kind)[object.name]; strings.Contains(got, object.has) != object.there {
					t.Errorf("%s %s has %q: %v, want %v:\n%s", object.kind, object.name, object.has, !object.there, object.there, got)
				}
			}
		})
	}
}

// write is what an actor sends; old is nil for an object that is made.
type write struct {
	user        string
	old, object map[string]any
	manager     string
}

// evaluator is a policy as the API server evaluates it.
type evaluator struct {
	compiler
	resource   schema.GroupVersionResource
	conditions plugincel.ConditionEvaluator
	patchers   []patch.Patcher
}

func newEvaluator(t *testing.T, name string, resource schema.GroupVersionResource) evaluator {
	t.Helper()
	text, err := render(t, "", policiesV1)
	if err != nil {
		t.Fatal(err)
	}
	p := decode[admissionv1.MutatingAdmissionPolicy](t, text, "MutatingAdmissionPolicy")[name]
	e := evaluator{resource: resource, compiler: newCompiler(t, 36, p.Spec.Variables, true)}
	e.conditions = e.compiler.conditions(t, p.Spec.MatchConditions)
	for _, m := range p.Spec.Mutations {
		e.patchers = append(e.patchers, e.patcher(t, m))
	}
	if len(e.patchers) == 0 {
		t.Fatalf("the policy %s changes nothing", name)
	}
	return e
}

// apply is what becomes of a write under the policy. An error refuses it.
func (e evaluator) apply(t *testing.T, w write) (map[string]any, error) {
	t.Helper()
	after := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.object)}
	gvk, operation := after.GroupVersionKind(), apiadmission.Create
	var before runtime.Object
	if w.old != nil {
		before, operation = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.old)}, apiadmission.Update
	}
	attributes := &apiadmission.VersionedAttributes{
		Attributes:    apiadmission.NewAttributesRecord(after, before, gvk, "shop", "website", e.resource, "", operation, &metav1.UpdateOptions{FieldManager: w.manager}, false, &user.DefaultInfo{Name: w.user}),
		VersionedKind: gvk, VersionedObject: apiadmission.NewLazyObject(after), VersionedOldObject: apiadmission.NewLazyObject(before),
	}
	request := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(e.resource), metav1.GroupVersionKind(gvk))
	results, _, err := e.conditions.ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		if r.Error != nil {
			return nil, r.Error
		}
		if r.EvalResult.Value() != true {
			return w.object, nil
		}
	}
	for _, p := range e.patchers {
		changed, err := p.Patch(e.CreateContext(t.Context()), patch.Request{
			MatchedResource: e.resource, VersionedAttributes: attributes, TypeConverter: managedfields.NewDeducedTypeConverter(),
			ObjectInterfaces: apiadmission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, err
		}
		attributes.UpdateObject(changed)
	}
	return changedObject(t, attributes.VersionedObject.Object()), nil
}

func changedObject(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	u, is := o.(*unstructured.Unstructured)
	if !is {
		t.Fatalf("the policy made %T", o)
	}
	return u.Object
}

// byWebhook is what becomes of it under the webhook that takes the policy's place.
func byWebhook(t *testing.T, path string, w write) map[string]any {
	t.Helper()
	sent := runtime.DeepCopyJSON(w.object)
	changes := admission.Rules(operator)[path](admission.Request{Object: sent, Old: w.old, User: w.user, FieldManager: w.manager})
	if diff := cmp.Diff(w.object, sent); diff != "" {
		t.Errorf("the rule changed the request:\n%s", diff)
	}
	encoded, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) > 0 {
		if text, err = operations.Apply(text); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// compare fails unless a webhook makes of every write what the policy does.
func compare(t *testing.T, policy, path string, resource schema.GroupVersionResource, writes []write) {
	t.Helper()
	e := newEvaluator(t, policy, resource)
	changed := 0
	for _, w := range writes {
		want, err := e.apply(t, w)
		if err != nil {
			want = w.object // left for the schema to refuse
			t.Logf("the policy refuses %v: %v", w.object, err)
		}
		got := byWebhook(t, path, w)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s writes %v where there is %v (-policy +webhook):\n%s", w.user, w.object, w.old, diff)
		}
		if !cmp.Equal(got, w.object) {
			changed++
		}
	}
	if changed == 0 || changed == len(writes) {
		t.Errorf("%d of %d writes are changed", changed, len(writes))
	}
}

// with is an object with a value below some fields; nothing is set for nil.
func with(object map[string]any, value any, fields ...string) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	if value != nil {
		if err := unstructured.SetNestedField(copied, value, fields...); err != nil {
			panic(err) // the objects are those of this file
		}
	}
	return copied
}

func TestTheWebhookHoldsWhatThePolicyHolds(t *testing.T) {
	t.Parallel()
	marks := []any{nil, map[string]any{}, map[string]any{"team": "a"}, map[string]any{"serin.dev/rollout": "website"}}
	resuming := map[string]any{"serin.dev/rollout": "website", "serin.dev/resume": "true"}
	var writes []write
	for _, mark := range marks {
		for _, next := range append(marks, resuming, map[string]any{"serin.dev/resume": "true"}, map[string]any{"serin.dev/rollout": "other"}) {
			for _, paused := range []any{nil, false, true} {
				for _, pausedNext := range []any{nil, false, true} {
					for _, image := range []string{"app:v1", "app:v2"} {
						old := with(with(deploymentOf("app:v1"), mark, "metadata", "annotations"), paused, "spec", "paused")
						object := with(with(deploymentOf(image), next, "metadata", "annotations"), pausedNext, "spec", "paused")
						writes = append(writes, write{user: operator, old: old, object: object}, write{user: "alice", old: old, object: object})
					}
				}
			}
		}
	}
	compare(t, "serin-hold-deployments", admission.PathHold, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, writes)
}

func deploymentOf(image string) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "website"},
		"spec": map[string]any{
			"replicas": int64(3),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}}},
		},
	}
}

func TestTheWebhookKeepsWhatThePolicyKeeps(t *testing.T) {
	t.Parallel()
	service := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "website"}, "spec": map[string]any{"type": "ClusterIP"}}
	selectors := []any{
		nil,
		map[string]any{},
		map[string]any{"app": "a"},
		map[string]any{"app": "a", "serin.dev/proxy": "p"},
		map[string]any{"app": "b", "serin.dev/proxy": "q"},
		map[string]any{"app": "a", "pod-template-hash": "1"},
		map[string]any{"app": "a", "pod-template-hash": "1", "serin.dev/proxy": "p"},
	}
	var writes []write
	for _, pin := range []any{nil, map[string]any{}, map[string]any{"serin.dev/pin": `{"pod-template-hash":"1"}`}, map[string]any{"serin.dev/pin": `{"pod-template-hash":"2"}`}} {
		for _, selector := range selectors {
			for _, next := range selectors {
				for _, manager := range []string{"", "kubectl", "serin-trafficsplit"} {
					old, object := with(with(service, pin, "metadata", "annotations"), selector, "spec", "selector"), with(service, next, "spec", "selector")
					writes = append(writes, write{user: "alice", manager: manager, old: old, object: object})
				}
			}
		}
	}
	compare(t, "serin-selectors", admission.PathKeep, schema.GroupVersionResource{Version: "v1", Resource: "services"}, writes)
}

func TestTheWebhookSignsWhatThePolicySigns(t *testing.T) {
	t.Parallel()
	rollout := map[string]any{"apiVersion": "serin.dev/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "website"}, "spec": map[string]any{"service": "website"}}
	controls := []any{nil, map[string]any{}}
	for _, action := range []string{"Promote", "Abort"} {
		for _, by := range []any{nil, "", "alice", "bob"} {
			controls = append(controls, with(with(map[string]any{}, action, "action"), by, "by"), with(with(map[string]any{"stepIndex": int64(1)}, action, "action"), by, "by"))
		}
	}
	var writes []write
	for _, user := range []string{"alice", strings.Repeat("ä", 300)} {
		for _, next := range append(controls, "no object", int64(5), map[string]any{"by": int64(5)}, map[string]any{"by": map[string]any{}, "action": "Abort"}) {
			object := with(rollout, next, "spec", "control")
			writes = append(writes, write{user: user, object: object})
			for _, control := range controls {
				writes = append(writes, write{user: user, old: with(rollout, control, "spec", "control"), object: object})
			}
		}
	}
	compare(t, "serin-decided-by", admission.PathSign, schema.GroupVersionResource{Group: "serin.dev", Version: "v1alpha1", Resource: "rollouts"}, writes)
}

func TestTheWebhookPutsInTheCopiesThatThePolicyPutsIn(t *testing.T) {
	t.Parallel()
	const spec = `
volumes:
- {name: a, configMap: {name: app}}
- {name: b, secret: {secretName: key}}
- {name: c, projected: {sources: [{configMap: {name: app}}, {secret: {name: key}}, {secret: {name: other}}, {downwardAPI: {}}]}}
- {name: d, emptyDir: {}}
containers:
- {name: a, env: [{name: A, value: x}, {name: B, valueFrom: {configMapKeyRef: {name: app, key: k}}}, {name: C, valueFrom: {secretKeyRef: {name: key, key: k}}}, {name: D, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}
- {name: b, envFrom: [{configMapRef: {name: app}}, {secretRef: {name: key}}, {configMapRef: {name: other}}]}
initContainers:
- {name: c, envFrom: [{configMapRef: {name: app}}], env: [{name: B, valueFrom: {configMapKeyRef: {name: app, key: k}}}]}
- {name: d}
`
	var full map[string]any
	if err := yaml.Unmarshal([]byte(spec), &full); err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "website"}}
	var writes []write
	for _, named := range []any{nil, "", "ConfigMap/app=app-1", "ConfigMap/app=app-1,Secret/key=key-1", "Secret/key=", "Secret/=key-1", "no mapping", "Secret/app=wrong,ConfigMap/key=wrong"} {
		for _, spec := range []any{full, map[string]any{"containers": []any{map[string]any{"name": "a"}}}} {
			object := with(pod, spec, "spec")
			if named != nil {
				object = with(object, map[string]any{"serin.dev/configuration": named}, "metadata", "annotations")
			}
			writes = append(writes, write{user: "alice", object: object})
		}
	}
	compare(t, "serin-configuration", admission.PathConfigure, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, writes)
}
