// SPDX-License-Identifier: Apache-2.0

package secretkey

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestAKeyIsReadOrSaysWhatToDo(t *testing.T) {
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "api.example"}}, Data: map[string][]byte{"token": []byte("x"), "empty": {}}}
	}
	api := fake.NewClientBuilder().WithObjects(secret("shop", "api"), secret("else", "other")).Build()
	failing := func(err error) client.Reader {
		return interceptor.NewClient(api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}})
	}
	for name, test := range map[string]struct {
		api       client.Reader
		of, key   string
		want, err string
	}{
		"it is there":             {api, "api", "token", "x", ""},
		"no such key":             {api, "api", "kye", "", `the Secret api has no key "kye", or an empty one; add it`},
		"an empty key":            {api, "api", "empty", "", `the Secret api has no key "empty", or an empty one; add it`},
		"no such Secret":          {api, "apo", "token", "", "the Secret apo does not exist; create it"},
		"that of another one":     {api, "other", "token", "", "the Secret other does not exist; create it"},
		"it may not be read":      {failing(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "api", nil)), "api", "token", "", "Serin is not allowed to read it: create a Role in shop that allows get on the Secret api, and a RoleBinding for the ServiceAccount serin/serin"},
		"the API is in trouble":   {failing(errors.New("confidential")), "api", "token", "", "the Secret api could not be read from the API"},
		"the time has run out":    {failing(context.DeadlineExceeded), "api", "token", "", context.DeadlineExceeded.Error()},
		"the name of another key": {api, "api", "", "", `the Secret api has no key "", or an empty one; add it`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reader{Secrets: test.api, Namespace: "shop", ServiceAccount: "serin/serin"}.Read(t.Context(), v1alpha1.SecretKeyReference{Name: test.of, Key: test.key}, "https://api.example/x")
			if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestASecretGoesOnlyToTheHostsThatItNames(t *testing.T) {
	for name, test := range map[string]struct {
		hosts, to string
		want      string
	}{
		"the host":                     {"api.example", "https://api.example/v1", ""},
		"one of several":               {"a.example, api.example:8443,", "https://api.example:8443/v1", ""},
		"one below":                    {"*.example", "https://api.example", ""},
		"an address":                   {"10.0.0.7", "http://10.0.0.7:9090", ""},
		"no annotation":                {"", "https://api.example", "the Secret api may not be sent to api.example; add the host to its annotation serin.dev/allowed-hosts"},
		"another host":                 {"api.example", "https://attacker.example/api.example", "the Secret api may not be sent to attacker.example; add the host to its annotation serin.dev/allowed-hosts"},
		"a host that ends like it":     {"api.example", "https://notapi.example", "may not be sent to notapi.example"},
		"a Service in a tenant's name": {"prometheus.monitoring", "http://prometheus.monitoring.svc:9090", "may not be sent to prometheus.monitoring.svc"},
		"another port":                 {"api.example:8443", "https://api.example", "may not be sent to api.example"},
		"no pattern":                   {"https://api.example", "https://api.example", `the annotation serin.dev/allowed-hosts of the Secret api: "https://api.example" is not a host; write for example`},
		"every host":                   {"*", "https://api.example", `"*" is not a host`},
		"no URL":                       {"api.example", "https://[", "the Secret api is not sent, since the address is not a URL; correct it"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", Annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: test.hosts}},
				Data:       map[string][]byte{"token": []byte("x")},
			}
			got, err := Reader{Secrets: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: "shop"}.Read(t.Context(), v1alpha1.SecretKeyReference{Name: "api", Key: "token"}, test.to)
			if test.want == "" && (err != nil || string(got) != "x") || test.want != "" && (err == nil || got != nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
