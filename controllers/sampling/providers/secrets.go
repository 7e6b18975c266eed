// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"errors"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/secretkey"
)

// secrets are those of the namespace of a release.
type secrets struct{ secretkey.Reader }

// Secret returns the value of a key to send to a URL, or a Missing.
func (s secrets) Secret(ctx context.Context, of source.SecretKey, url string) (string, error) {
	value, err := s.Read(ctx, v1alpha1.SecretKeyReference{Name: of.Name, Key: of.Key}, url)
	var known *secretkey.Error
	switch {
	case err == nil:
		return string(value), nil
	case errors.As(err, &known):
		return "", &source.MissingError{Reason: source.Credentials, Message: known.Error()}
	default:
		return "", &source.MissingError{Reason: source.Timeout, Message: "the Secret " + of.Name + " could not be read from the API in time"}
	}
}

// The keys of the Secrets that hold credentials.
const (
	keyToken           = "token"
	keyAPIKey          = "apiKey"
	keyAppKey          = "appKey"
	keyAccessKeyID     = "accessKeyID"
	keySecretAccessKey = "secretAccessKey"
	keySessionToken    = "sessionToken"
	keyUsername        = "username"
	keyPassword        = "password"
)

// key is a key of the Secret with credentials; zero without one.
func key(ref *v1alpha1.CredentialsReference, name string) source.SecretKey {
	if ref == nil {
		return source.SecretKey{}
	}
	return source.SecretKey{Name: ref.Name, Key: name}
}
