// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/rollout"
)

func TestTheModeIsInForceOnlyWhereTheClusterServesIt(t *testing.T) {
	v1, v1beta1 := admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion
	for name, test := range map[string]struct {
		mode   string
		serves []schema.GroupVersion
		want   rollout.Admission
		fails  string
	}{
		"policies":                          {mode: "policies", serves: []schema.GroupVersion{v1}, want: rollout.Admission{Mode: "policies", Hold: "hold", Configure: "configure"}},
		"policies that are not served":      {mode: "policies", serves: []schema.GroupVersion{v1beta1}},
		"those of v1beta1":                  {mode: "policies-v1beta1", serves: []schema.GroupVersion{v1, v1beta1}, want: rollout.Admission{Mode: "policies-v1beta1", Hold: "hold", Configure: "configure"}},
		"those of v1beta1, not served":      {mode: "policies-v1beta1", serves: []schema.GroupVersion{v1}},
		"webhooks, which every one can":     {mode: "webhook", want: rollout.Admission{Mode: "webhook", Webhooks: "webhooks", Hold: admission.WebhookHold, Configure: admission.WebhookConfigure}},
		"a mode that there is not":          {mode: "policy", fails: "--admission-mode"},
		"none, as by a flag that was empty": {mode: "", fails: "--admission-mode"},
	} {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(test.serves)
			for _, version := range test.serves {
				mapper.Add(version.WithKind("MutatingAdmissionPolicy"), meta.RESTScopeRoot)
			}
			o := admissionOptions{mode: test.mode, hold: "hold", configure: "configure", webhooks: "webhooks"}
			got, err := o.found(mapper)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWebhooksNeedAServiceAnAccountAndOneCertificate(t *testing.T) {
	for name, o := range map[string]admissionOptions{
		"no Service":       {secret: "s"},
		"no namespace":     {service: "webhooks", secret: "s"},
		"no certificate":   {service: "serin/webhooks"},
		"two certificates": {service: "serin/webhooks", secret: "s", certDir: "d"},
	} {
		o.mode = string(rollout.AdmissionWebhook)
		if err := o.serve(t.Context(), nil, "serin/serin"); err == nil || !strings.Contains(err.Error(), "--webhook-service") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := admissionOptions{mode: string(rollout.AdmissionWebhook), service: "serin/webhooks", secret: "s"}
	if err := o.serve(t.Context(), nil, ""); err == nil || !strings.Contains(err.Error(), "--service-account") {
		t.Errorf("without an account: %v", err)
	}
}
