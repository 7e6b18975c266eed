// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"strings"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// cdEventsVersion is the version of the CDEvents specification that the events
// follow (https://cdevents.dev/docs).
const cdEventsVersion = "0.5.0"

// cdEvent is an event of the CDEvents vocabulary. The types are here and not those
// of the CDEvents SDK because that compiles the schemas of the whole vocabulary
// when a program starts; the tests validate what is rendered with the SDK.
type cdEvent struct {
	Context               cdContext `json:"context"`
	Subject               cdSubject `json:"subject"`
	CustomData            event     `json:"customData"`
	CustomDataContentType string    `json:"customDataContentType"`
}

type cdContext struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Timestamp   string `json:"timestamp"`
}

type cdSubject struct {
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Content cdContent `json:"content"`
}

type cdContent struct {
	Environment cdReference `json:"environment"`
	// ArtifactID is the package URL of the version that the event is about.
	ArtifactID string `json:"artifactId"`
}

type cdReference struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

// renderCDEvent renders a CDEvent in a CloudEvent, as the specification's binding
// says: id, source, type, time and subject of both are the same.
func renderCDEvent(ro Rollout, n v1alpha1.PendingNotification) (Payload, error) {
	e := cdEvent{
		Context: cdContext{
			SpecVersion: cdEventsVersion, ID: n.ID, Source: ro.source(), Type: cdEventType(n.Kind),
			Timestamp: n.Time.UTC().Format(time.RFC3339Nano),
		},
		Subject: cdSubject{
			ID: "service/" + escape(ro.Service), Source: ro.source(),
			Content: cdContent{
				Environment: cdReference{ID: ro.Namespace, Source: "/api/v1/namespaces"},
				ArtifactID:  packageURL(ro, n.Revision),
			},
		},
		CustomData:            makeEvent(ro, n),
		CustomDataContentType: "application/json",
	}
	return structured(cloudEventContext{
		id: e.Context.ID, source: e.Context.Source, kind: e.Context.Type, subject: e.Subject.ID, at: n.Time,
	}, e)
}

// cdEventType chooses the predicate. The vocabulary speaks of a service when its
// version changed: it was upgraded when the new version has been promoted and
// rolled back when the old one has all traffic again. What happens on the way has
// no word there and is an event of Serin's own, so that no receiver counts a canary as
// a deployment.
func cdEventType(kind v1alpha1.NotificationKind) string {
	switch kind {
	case v1alpha1.NotifyPromoted:
		return "dev.cdevents.service.upgraded.0.3.0"
	case v1alpha1.NotifyRolledBack:
		return "dev.cdevents.service.rolledback.0.3.0"
	default:
		return "dev.cdeventsx.serin-rollout." + strings.ToLower(string(kind)) + ".0.1.0"
	}
}

// packageURL names a version of what runs behind a Service. A revision may run
// several images, so it is a package of its own, of the type generic.
func packageURL(ro Rollout, revision string) string {
	return "pkg:generic/" + escape(ro.Namespace) + "/" + escape(ro.Service) + "@" + escape(revision)
}
