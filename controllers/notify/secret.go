// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/secretkey"
)

// signingKey reads the key for each attempt: a key that was changed is used at
// once, and none stays in memory.
func (c *caller) signingKey(ctx context.Context, namespace string, e v1alpha1.Endpoint) ([]byte, error) {
	key, err := secretkey.Reader{Secrets: c.secrets, Namespace: namespace, ServiceAccount: c.options.ServiceAccount}.Read(ctx, *e.SigningKeyRef, e.URL)
	if known, ok := errors.AsType[*secretkey.Error](err); ok {
		return nil, &ownError{message: "endpoint.signingKeyRef: " + known.Error()}
	}
	return key, err
}
