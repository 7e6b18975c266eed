// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/plan"
)

// maxNote is the most bytes that the API takes as the note of an event.
const maxNote = 1024

// announce tells people what they may have to know, in the log and as an event.
func (r *Reconciler) announce(ctx context.Context, cr *v1alpha1.CanaryRelease, e plan.Event) {
	log.FromContext(ctx).Info(e.Message, "CanaryRelease", klog.KObj(cr), "reason", e.Reason)
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.record(cr, kind, e.Reason, e.Message)
}

func (r *Reconciler) record(cr *v1alpha1.CanaryRelease, kind, reason, note string) {
	const more = "…"
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-len(more)], "") + more
	}
	r.recorder.Eventf(cr, nil, kind, reason, "Canary", "%s", note)
}

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
		return "the API server does not take it"
	}
	return fmt.Sprintf("the API server does not take %s", strings.Join(fields, ", "))
}

// plain reports whether the API server says something of the request, and nothing of the
// object in it.
func plain(err error) bool {
	denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") // by RBAC
	return denied || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// unvalued is an error of which only what is safe is told, also in the log.
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
