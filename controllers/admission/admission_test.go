// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/traffic"
)

const operator = "system:serviceaccount:serin-system:serin"

// review has a rule answer as the API server asks, and returns the changes, as JSON.
func review(t *testing.T, path, user, old, object string) string {
	t.Helper()
	raw := func(text string) (r runtime.RawExtension) {
		if text != "" {
			var err error
			if r.Raw, err = yaml.YAMLToJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	asked := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &admissionv1.AdmissionRequest{
		UID: "1", Object: raw(object), OldObject: raw(old),
	}}
	asked.Request.UserInfo.Username = user
	if user == operator {
		asked.Request.Options = raw("fieldManager: " + traffic.FieldManager)
	}
	body, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	admission.Handler(admission.Rules(operator)[path]).ServeHTTP(answer, request)
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &answered); err != nil || answered.Response == nil || !answered.Response.Allowed {
		t.Fatalf("answered %s: %v", answer.Body, err)
	}
	return string(answered.Response.Patch)
}

func TestTheRules(t *testing.T) {
	const (
		managed   = "metadata: {annotations: {serin.dev/rollout: website}}\n"
		resumed   = "metadata: {annotations: {serin.dev/rollout: website, serin.dev/resume: 'true'}}\n"
		v1        = "spec: {template: {image: v1}}\n"
		v2        = "spec: {template: {image: v2}}\n"
		pausedV1  = "spec: {template: {image: v1}, paused: true}\n"
		pause     = `[{"op":"add","path":"/spec/paused","value":true}]`
		decided   = "spec: {control: {action: Abort}}\n"
		byAlice   = "spec: {control: {action: Abort, by: alice}}\n"
		signAlice = `[{"op":"add","path":"/spec/control/by","value":"alice"}]`
	)
	long := strings.Repeat("ü", 300)
	for name, test := range map[string]struct{ path, user, old, object, changes string }{
		"a changed template is held":                     {admission.PathHold, "alice", managed + v1, managed + v2, pause},
		"the operator's change too":                      {admission.PathHold, operator, managed + v1, managed + v2, pause},
		"another field is not":                           {admission.PathHold, "alice", managed + v1, managed + v1, ""},
		"nor a Deployment that is not managed":           {admission.PathHold, "alice", v1, v2, ""},
		"nor what is held by itself":                     {admission.PathHold, "alice", managed + v1, managed + "spec: {template: {image: v2}, paused: true}", ""},
		"the pause is kept":                              {admission.PathHold, "alice", managed + pausedV1, managed + v1, pause},
		"the operator ends it":                           {admission.PathHold, operator, managed + pausedV1, managed + v1, ""},
		"a user who resumes ends it":                     {admission.PathHold, "alice", managed + pausedV1, resumed + v1, ""},
		"the mark is kept, without any annotation":       {admission.PathHold, "alice", managed + pausedV1, pausedV1, `[{"op":"add","path":"/metadata/annotations","value":{"serin.dev/rollout":"website"}}]`},
		"the mark is kept, beside another":               {admission.PathHold, "alice", managed + pausedV1, "metadata: {annotations: {a: b}}\n" + pausedV1, `[{"op":"add","path":"/metadata/annotations/serin.dev~1rollout","value":"website"}]`},
		"a Deployment that is made is not held":          {admission.PathHold, "alice", "", managed + v1, ""},
		"one that becomes managed is held":               {admission.PathHold, "alice", v1, managed + v2, pause},
		"another value does not resume":                  {admission.PathHold, "alice", managed + pausedV1, "metadata: {annotations: {serin.dev/rollout: website, serin.dev/resume: 'false'}}\n" + v1, pause},
		"a key of Serin's is kept":                       {admission.PathKeep, "alice", "spec: {selector: {app: a, serin.dev/proxy: p}}", "spec: {selector: {app: b}}", `[{"op":"add","path":"/spec/selector/serin.dev~1proxy","value":"p"}]`},
		"a pin is kept":                                  {admission.PathKeep, "alice", "metadata: {annotations: {serin.dev/pin: '{\"hash\":\"1\"}'}}\nspec: {selector: {app: a, hash: '1'}}", "spec: {selector: {app: a}}", `[{"op":"add","path":"/spec/selector/hash","value":"1"}]`},
		"another key of the selector is not kept":        {admission.PathKeep, "alice", "spec: {selector: {app: a, tier: t, serin.dev/proxy: p}}", "spec: {selector: {app: a, serin.dev/proxy: p}}", ""},
		"a key of the pin with another value is not":     {admission.PathKeep, "alice", "metadata: {annotations: {serin.dev/pin: '{\"hash\":\"1\"}'}}\nspec: {selector: {app: a, hash: '2'}}", "spec: {selector: {app: a}}", ""},
		"the operator removes its keys":                  {admission.PathKeep, operator, "spec: {selector: {app: a, serin.dev/proxy: p}}", "spec: {selector: {app: a}}", ""},
		"a Service without a selector stays so":          {admission.PathKeep, "alice", "spec: {selector: {app: a, serin.dev/proxy: p}}", "spec: {}", ""},
		"a decision is signed":                           {admission.PathSign, "alice", "spec: {}", decided, signAlice},
		"one in a new object too":                        {admission.PathSign, "alice", "", decided, signAlice},
		"the name of the decision before is replaced":    {admission.PathSign, "alice", "spec: {control: {action: Promote, by: bob}}", "spec: {control: {action: Abort, by: bob}}", signAlice},
		"another name is left to refuse":                 {admission.PathSign, "alice", "spec: {}", "spec: {control: {action: Abort, by: bob}}", ""},
		"a decision that stays keeps its name":           {admission.PathSign, "bob", byAlice, decided, signAlice},
		"an empty name is no name":                       {admission.PathSign, "bob", byAlice, "spec: {control: {action: Abort, by: ''}}", signAlice},
		"another name on it is left to refuse":           {admission.PathSign, "bob", byAlice, "spec: {control: {action: Abort, by: bob}}", ""},
		"a field less is another decision":               {admission.PathSign, "alice", "spec: {control: {action: Abort, stepIndex: 1, by: bob}}", decided, signAlice},
		"a signed one stays":                             {admission.PathSign, "bob", byAlice, byAlice, ""},
		"as much of a name as fits":                      {admission.PathSign, long, "", decided, `[{"op":"add","path":"/spec/control/by","value":"` + long[:512] + `"}]`},
		"no decision":                                    {admission.PathSign, "alice", byAlice, "spec: {}", ""},
		"what is no object is left to refuse":            {admission.PathSign, "alice", "", "spec: {control: 5}", ""},
		"what is no name is left to refuse":              {admission.PathSign, "alice", "", "spec: {control: {action: Abort, by: 5}}", ""},
		"a pod reads its copy":                           {admission.PathConfigure, "alice", "", "metadata: {annotations: {serin.dev/configuration: ConfigMap/a=a-1}}\nspec: {containers: [{envFrom: [{configMapRef: {name: b}}, {configMapRef: {name: a}}]}]}", `[{"op":"replace","path":"/spec/containers/0/envFrom/1/configMapRef/name","value":"a-1"}]`},
		"a pod without the annotation reads what it did": {admission.PathConfigure, "alice", "", "spec: {containers: [{envFrom: [{configMapRef: {name: a}}]}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.changes, review(t, test.path, test.user, test.old, test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A pod refers to a ConfigMap and a Secret of the same name in every way that there is. Only
// the Secret, and then only the ConfigMap, has a copy.
func TestAPodReadsItsCopyWhereverItRefersToIt(t *testing.T) {
	const spec = `
spec:
  volumes:
  - configMap: {name: a}
  - secret: {secretName: a}
  - projected: {sources: [{configMap: {name: a}}, {secret: {name: a}}]}
  containers:
  - env: [{valueFrom: {configMapKeyRef: {name: a}}}, {valueFrom: {secretKeyRef: {name: a}}}]
    envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}]
  initContainers:
  - envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}]
`
	for kind, paths := range map[string][]string{
		"ConfigMap": {
			"volumes/0/configMap/name", "volumes/2/projected/sources/0/configMap/name",
			"containers/0/env/0/valueFrom/configMapKeyRef/name", "containers/0/envFrom/0/configMapRef/name", "initContainers/0/envFrom/0/configMapRef/name",
		},
		"Secret": {
			"volumes/1/secret/secretName", "volumes/2/projected/sources/1/secret/name",
			"containers/0/env/1/valueFrom/secretKeyRef/name", "containers/0/envFrom/1/secretRef/name", "initContainers/0/envFrom/1/secretRef/name",
		},
	} {
		var want []string
		for _, p := range paths {
			want = append(want, `{"op":"replace","path":"/spec/`+p+`","value":"a-1"}`)
		}
		got := review(t, admission.PathConfigure, "alice", "", "metadata: {annotations: {serin.dev/configuration: "+kind+"/a=a-1}}"+spec)
		if diff := cmp.Diff("["+strings.Join(want, ",")+"]", got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestEachWebhookIsToldItsAuthorityOnce(t *testing.T) {
	stored := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "webhooks"}, Webhooks: []registrationv1.MutatingWebhook{
		{Name: "hold.example.org"},
		{Name: "sign.example.org", ClientConfig: registrationv1.WebhookClientConfig{CABundle: []byte("old")}},
		{Name: "keep.example.org", ClientConfig: registrationv1.WebhookClientConfig{CABundle: []byte("authorities")}},
	}}
	patches := 0
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stored).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			patches++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	a := admission.Announcer{Client: c, Name: "webhooks"}
	for range 2 { // the second time nothing is left to do
		if err := a.Announce(t.Context(), []byte("authorities")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	for _, w := range stored.Webhooks {
		if string(w.ClientConfig.CABundle) != "authorities" {
			t.Errorf("%s has %q", w.Name, w.ClientConfig.CABundle)
		}
	}
	if patches != 1 {
		t.Errorf("%d patches", patches)
	}
	if err := (admission.Announcer{Client: c, Name: "other"}).Announce(t.Context(), nil); err == nil {
		t.Error("nothing is said of a configuration that is not there")
	}
}
