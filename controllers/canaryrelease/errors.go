// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// safe is what may be said of an error. The API server repeats what it finds invalid, and
// an admission webhook what it denies, which may be a value of the release: then only the
// fields are named.
func safe(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || plain(err) {
		return err.Error()
	}
	var fields []string
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			if c.Field != "" {
				fields = append(fields, c.Field)
			}
		}
	}
	if len(fields) == 0 {
		return "the API server rejects it"
	}
	return "the API server rejects " + strings.Join(fields, ", ")
}

// plain reports whether the API server says something of the request, and nothing of the
// object in it.
func plain(err error) bool {
	denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") // by RBAC
	return denied || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// unvalued is an error of which only what is safe is printed, also in the log.
type unvalued struct{ error }

func (u unvalued) Error() string { return safe(u.error) }

func (u unvalued) Unwrap() error { return u.error }

// withoutValues hides what an error may repeat of a release.
func withoutValues(err error) error {
	if err == nil {
		return nil
	}
	return unvalued{err}
}
