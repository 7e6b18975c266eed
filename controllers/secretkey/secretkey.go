// SPDX-License-Identifier: Apache-2.0

package secretkey

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Error is a failure that can be shown: its text was written here.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// Reader reads the Secrets of one namespace.
type Reader struct {
	// Secrets are read one by one, from the API and not from a cache.
	Secrets client.Reader
	// Namespace of the Secrets.
	Namespace string
	// ServiceAccount that reads them, for the message that says what it may not do.
	ServiceAccount string
}

// Read returns the value of a key, never empty, for a request to a URL, if the Secret
// says that it may go to its host: who may write the URL need not be who may read the
// Secret. It reads each time: a key that was changed is used at once, and none stays in
// memory. Its error is an Error, or that of a context that ended.
func (r Reader) Read(ctx context.Context, ref v1alpha1.SecretKeyReference, to string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Secrets.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, secret)
	if err != nil {
		return nil, r.explain(err, ref)
	}
	if err := allowed(secret, to); err != nil {
		return nil, err
	}
	key := secret.Data[ref.Key]
	if len(key) == 0 {
		return nil, errorf("the Secret %s has no key %q, or an empty one; add it", ref.Name, ref.Key)
	}
	return key, nil
}

// allowed returns an Error when a Secret does not name the host of a URL.
func allowed(secret *corev1.Secret, to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return errorf("the Secret %s is not sent, since the address is not a URL; correct it", secret.Name)
	}
	var patterns []string
	for text := range strings.SplitSeq(secret.Annotations[v1alpha1.AnnotationAllowedHosts], ",") {
		if text = strings.TrimSpace(text); text != "" {
			patterns = append(patterns, text)
		}
	}
	hosts, err := egress.ParseHosts(patterns)
	if err != nil {
		return errorf("the annotation %s of the Secret %s: %w", v1alpha1.AnnotationAllowedHosts, secret.Name, err)
	}
	if !hosts.Match(u) {
		host, _ := egress.Host(u)
		return errorf("the Secret %s may not be sent to %.100s; add the host to its annotation %s", secret.Name, host, v1alpha1.AnnotationAllowedHosts)
	}
	return nil
}

// explain says what to do. The API server's words are left out, since they may change
// from one attempt to the next.
func (r Reader) explain(err error, ref v1alpha1.SecretKeyReference) error {
	switch {
	case apierrors.IsForbidden(err):
		return errorf("Serin is not allowed to read it: create a Role in %s that allows get on the Secret %s, and a RoleBinding for the ServiceAccount %s",
			r.Namespace, ref.Name, r.ServiceAccount)
	case apierrors.IsNotFound(err):
		return errorf("the Secret %s does not exist; create it", ref.Name)
	case egress.IsTimeout(err):
		return err
	default:
		return errorf("the Secret %s could not be read from the API", ref.Name)
	}
}

func errorf(format string, args ...any) error {
	return &Error{message: fmt.Errorf(format, args...).Error()}
}
