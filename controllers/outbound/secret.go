// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/egress"
)

// signingKey reads the key for each attempt: a key that was changed is used at
// once, and none stays in memory.
func (c *caller) signingKey(ctx context.Context, namespace string, ref *v1alpha1.SecretKeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	err := c.secrets.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, secret)
	if err != nil {
		return nil, c.keyError(err, namespace, ref)
	}
	key := secret.Data[ref.Key]
	if len(key) == 0 {
		return nil, keyErrorf("the Secret %s has no key %q, or an empty one; add it", ref.Name, ref.Key)
	}
	return key, nil
}

// keyError says what to do. The API server's words are left out, since they may
// change from one attempt to the next.
func (c *caller) keyError(err error, namespace string, ref *v1alpha1.SecretKeyReference) error {
	switch {
	case apierrors.IsForbidden(err):
		return keyErrorf("may not be read: create a Role in %s that allows get on the Secret %s, and a RoleBinding for the ServiceAccount %s",
			namespace, ref.Name, c.options.ServiceAccount)
	case apierrors.IsNotFound(err):
		return keyErrorf("the Secret %s does not exist; create it", ref.Name)
	case egress.IsTimeout(err):
		return err
	default:
		return keyErrorf("the Secret %s could not be read from the API", ref.Name)
	}
}

func keyErrorf(format string, args ...any) error {
	return &ownError{message: "endpoint.signingKeyRef: " + fmt.Sprintf(format, args...)}
}
