// SPDX-License-Identifier: Apache-2.0

package secretkey

import (
	"context"
	"errors"
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
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte("x"), "empty": {}}}
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
		"it may not be read":      {failing(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "api", nil)), "api", "token", "", "may not be read: create a Role in shop that allows get on the Secret api, and a RoleBinding for the ServiceAccount serin/serin"},
		"the API is in trouble":   {failing(errors.New("confidential")), "api", "token", "", "the Secret api could not be read from the API"},
		"the time has run out":    {failing(context.DeadlineExceeded), "api", "token", "", context.DeadlineExceeded.Error()},
		"the name of another key": {api, "api", "", "", `the Secret api has no key "", or an empty one; add it`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reader{Secrets: test.api, Namespace: "shop", ServiceAccount: "serin/serin"}.Read(t.Context(), v1alpha1.SecretKeyReference{Name: test.of, Key: test.key})
			if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
