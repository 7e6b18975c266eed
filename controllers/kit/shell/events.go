// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/controllers/kit"
)

// maxNote is the most bytes that the API takes as the note of an event.
const maxNote = 1024

// Reporter writes events on objects of one kind. Action is what they say that is done.
type Reporter struct {
	Recorder     events.EventRecorder
	Kind, Action string
}

// Announce puts what happened into the log, and into an event if a user may have to know.
func (r Reporter) Announce(ctx context.Context, o client.Object, e kit.Event) {
	log.FromContext(ctx).Info(e.Message, r.Kind, klog.KObj(o), "reason", e.Reason)
	if e.Routine {
		return
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.Record(o, kind, e.Reason, e.Message)
}

// Record writes an event. One that is repeated before the object changes becomes a series
// of the first.
func (r Reporter) Record(o client.Object, kind, reason, note string) {
	r.Recorder.Eventf(o, nil, kind, reason, r.Action, "%s", cut(note))
}

// cut leaves no more bytes than the API takes, and no half character.
func cut(note string) string {
	const more = "…"
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len(more)], "") + more
}
