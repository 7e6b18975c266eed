// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release"
)

// maxNote is the most bytes that the API takes as the note of an event.
const maxNote = 1024

// announce puts what happened into the log, and tells people what they may have to
// know about as an event.
func (r *Reconciler) announce(ctx context.Context, ro *v1alpha1.Rollout, e release.Event) {
	log.FromContext(ctx).Info(e.Message, "Rollout", klog.KObj(ro), "reason", e.Reason)
	if e.Routine {
		return
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.record(ro, kind, e.Reason, e.Message)
}

// record tells an event on the Rollout. One that is repeated before the Rollout
// changes becomes a series of the first.
func (r *Reconciler) record(ro *v1alpha1.Rollout, kind, reason, note string) {
	r.recorder.Eventf(ro, nil, kind, reason, "Release", "%s", cut(note))
}

// cut leaves no more bytes than the API takes, and no half character.
func cut(note string) string {
	const more = "…"
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len(more)], "") + more
}
