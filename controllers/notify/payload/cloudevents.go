// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"fmt"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// cloudEventsType is the content type of a CloudEvent in the structured mode of
// the HTTP binding.
const cloudEventsType = cloudevents.ApplicationCloudEventsJSON + "; charset=utf-8"

// renderCloudEvent renders a CloudEvent 1.0. Its source and id together are unique;
// the subject is the revision.
func renderCloudEvent(ro Rollout, n v1alpha1.PendingNotification) (Payload, error) {
	return structured(cloudEventContext{
		id: n.ID, source: ro.source(), subject: n.Revision, at: n.Time,
		kind: "dev.serin.rollout." + strings.ToLower(string(n.Kind)) + ".v1alpha1",
	}, makeEvent(ro, n))
}

// cloudEventContext are the attributes of a CloudEvent.
type cloudEventContext struct {
	id, source, subject, kind string
	at                        metav1.MicroTime
}

// structured renders a CloudEvent with its data in one JSON object.
func structured(c cloudEventContext, data any) (Payload, error) {
	e := cloudevents.New(cloudevents.CloudEventsVersionV1)
	e.SetID(c.id)
	e.SetSource(c.source)
	e.SetType(c.kind)
	e.SetSubject(c.subject)
	e.SetTime(c.at.UTC())
	if err := e.SetData(cloudevents.ApplicationJSON, data); err != nil {
		return Payload{}, fmt.Errorf("render the data: %w", err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return Payload{}, fmt.Errorf("render the CloudEvent: %w", err)
	}
	return Payload{ContentType: cloudEventsType, Body: body}, nil
}
