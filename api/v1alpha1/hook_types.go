// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hook is an HTTP endpoint that is called before the release goes on, or notified how
// it ended. Each call has an identity in the header Idempotency-Key, which stays the same
// when the call is repeated.
type Hook struct {
	// name of the hook, unique in the Rollout.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// when the hook is called: BeforeRelease (before the canary exists), BeforeStep (before the
	// weight of each step is requested), Gate (while a step with until: Manual waits),
	// BeforePromotion (before all traffic goes to the canary) or AfterRelease (with the
	// outcome; nothing waits for it). At all other times the release waits for a status of 200
	// to 299; 403 refuses for good and rolls back, 202 and 425 mean "not yet", and anything
	// else is tried again.
	// +required
	When HookTime `json:"when"`

	// endpoint that is called with POST.
	// +required
	Endpoint Endpoint `json:"endpoint"`

	// timeout is how long a hook that blocks may take to approve before the release is rolled
	// back, counted from the first call. When unset or zero, it is called until it answers.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
}

// HookTime is when a hook is called.
//
// +kubebuilder:validation:Enum=BeforeRelease;BeforeStep;Gate;BeforePromotion;AfterRelease
type HookTime string

// When a hook is called.
const (
	// HookBeforeRelease is before the canary exists.
	HookBeforeRelease HookTime = "BeforeRelease"
	// HookBeforeStep is before the weight of each step is requested.
	HookBeforeStep HookTime = "BeforeStep"
	// HookGate is while a step with until: Manual waits.
	HookGate HookTime = "Gate"
	// HookBeforePromotion is before all traffic goes to the canary.
	HookBeforePromotion HookTime = "BeforePromotion"
	// HookAfterRelease is when the outcome is settled.
	HookAfterRelease HookTime = "AfterRelease"
)

// Endpoint is where an HTTP request goes.
type Endpoint struct {
	// url of the endpoint, http or https. Addresses of nodes, of loopback, of the
	// cloud's metadata and of the API server are refused.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s@]+$`
	URL string `json:"url"`

	// signingKeyRef names the key in a Secret of the same namespace that signs the
	// request: the header Serin-Signature is "sha256=" and the HMAC-SHA-256 of the
	// body in hexadecimal. When unset, the request is not signed.
	// +optional
	SigningKeyRef *SecretKeyReference `json:"signingKeyRef,omitempty"`
}

// SecretKeyReference names a key in a Secret of the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// Notification is an HTTP endpoint that is notified about a release.
type Notification struct {
	// name of the notification, unique in the Rollout.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// endpoint that is called with POST.
	// +required
	Endpoint Endpoint `json:"endpoint"`

	// format of the body: CloudEvents (structured JSON), CDEvents (a CloudEvent of the
	// continuous delivery vocabulary) or Slack (what incoming webhooks of chat systems
	// accept). Default CloudEvents.
	// +optional
	// +kubebuilder:default=CloudEvents
	Format NotificationFormat `json:"format,omitempty"`

	// events chooses what is sent: Started, StepProgrammed, Waiting (for approval),
	// Promoted, RolledBack, Superseded. When unset, all of them are sent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	Events []NotificationKind `json:"events,omitempty"`
}

// NotificationFormat is the format of a notification's body.
//
// +kubebuilder:validation:Enum=CloudEvents;CDEvents;Slack
type NotificationFormat string

// Formats of notifications.
const (
	FormatCloudEvents NotificationFormat = "CloudEvents"
	FormatCDEvents    NotificationFormat = "CDEvents"
	FormatSlack       NotificationFormat = "Slack"
)

// NotificationKind is what happened in a release.
//
// +kubebuilder:validation:Enum=Started;StepProgrammed;Waiting;Promoted;RolledBack;Superseded
type NotificationKind string

// What happened in a release.
const (
	NotifyStarted        NotificationKind = "Started"
	NotifyStepProgrammed NotificationKind = "StepProgrammed"
	NotifyWaiting        NotificationKind = "Waiting"
	NotifyPromoted       NotificationKind = "Promoted"
	NotifyRolledBack     NotificationKind = "RolledBack"
	NotifySuperseded     NotificationKind = "Superseded"
)

// HookStatus is the answer of a hook to one call.
type HookStatus struct {
	// id of the call: the hook's name, the revision, and the step if there is one.
	// +required
	// +kubebuilder:validation:MaxLength=200
	ID string `json:"id"`

	// answer is Called, Approved, Refused or TimedOut.
	// +required
	// +kubebuilder:validation:Enum=Called;Approved;Refused;TimedOut
	Answer HookAnswer `json:"answer"`

	// calledAt is when the hook was first called.
	// +required
	CalledAt metav1.MicroTime `json:"calledAt"`

	// message says how the last attempt ended. It contains no text from the endpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// HookAnswer is the outcome of a call.
type HookAnswer string

// Outcomes of a call.
const (
	HookCalled   HookAnswer = "Called"
	HookApproved HookAnswer = "Approved"
	HookRefused  HookAnswer = "Refused"
	HookTimedOut HookAnswer = "TimedOut"
)

// PendingNotification is a notification that is sent until its endpoint accepts it. Its
// identity stays the same when it is sent again.
type PendingNotification struct {
	// id is unique to the event and the endpoint.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// name of the notification in spec.notifications.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// hook is true when name is that of a hook in spec.hooks.
	// +optional
	Hook bool `json:"hook,omitempty"`

	// kind of the event.
	// +required
	Kind NotificationKind `json:"kind"`

	// revision that the event is about.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// step is the summary of the step, where the event has one: "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Step string `json:"step,omitempty"`

	// weight in percent that was live.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`

	// message is a sentence for users.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// time of the event.
	// +required
	Time metav1.MicroTime `json:"time"`
}
