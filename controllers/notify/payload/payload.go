// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Rollout is whose release a payload is about.
type Rollout struct {
	// Namespace, Name and UID of the Rollout.
	Namespace, Name string
	UID             types.UID
	// Service is the root Service whose traffic is moved.
	Service string
}

// Payload is the body of a request and its type.
type Payload struct {
	ContentType string
	Body        []byte
}

// Notification renders an event in a format; the empty one is CloudEvents.
func Notification(ro Rollout, n v1alpha1.PendingNotification, format v1alpha1.NotificationFormat) (Payload, error) {
	var (
		p   Payload
		err error
	)
	switch format {
	case v1alpha1.FormatCloudEvents, "":
		p, err = renderCloudEvent(ro, n)
	case v1alpha1.FormatCDEvents:
		p, err = renderCDEvent(ro, n)
	case v1alpha1.FormatSlack:
		p, err = renderSlack(ro, n)
	default:
		err = fmt.Errorf("format %q is unknown: use CloudEvents, CDEvents or Slack", format)
	}
	if err != nil {
		return Payload{}, fmt.Errorf("notification %s: %w", n.ID, err)
	}
	return p, nil
}

// rolloutReference is a Rollout in a payload.
type rolloutReference struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func (ro Rollout) reference() rolloutReference {
	return rolloutReference{Namespace: ro.Namespace, Name: ro.Name, UID: ro.UID}
}

// source is the Rollout's path in the API, as a URI reference.
func (ro Rollout) source() string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + escape(ro.Namespace) + "/rollouts/" + escape(ro.Name)
}

// event is what a notification says, in CloudEvents and in the custom data of
// CDEvents.
type event struct {
	Rollout  rolloutReference          `json:"rollout"`
	Service  string                    `json:"service"`
	Kind     v1alpha1.NotificationKind `json:"kind"`
	Revision string                    `json:"revision"`
	// Step counts from 1: "2/3". Absent when the event has none.
	Step string `json:"step,omitempty"`
	// Weight in percent that was live.
	Weight  int32  `json:"weight"`
	Message string `json:"message,omitempty"`
}

func makeEvent(ro Rollout, n v1alpha1.PendingNotification) event {
	return event{
		Rollout: ro.reference(), Service: ro.Service, Kind: n.Kind, Revision: n.Revision,
		Step: n.Step, Weight: n.Weight, Message: n.Message,
	}
}
