// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronExpression is a recurring time: minute, hour, day of month, month and day of week, such
// as "0 9 * * MON-FRI", or one of @hourly, @daily, @weekly, @monthly and @yearly. It is read in
// a time zone that another field of the same object names.
//
// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[-0-9A-Za-z*/,?]+( +[-0-9A-Za-z*/,?]+){4})$`
// +kubebuilder:validation:MaxLength=128
type CronExpression string

// Schedule says when traffic may move to a new version.
type Schedule struct {
	// timeZone is a name of the IANA time zone database, such as "Europe/Berlin",
	// in which every cron expression of the Rollout is read. Default "UTC".
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// windows are the periods in which releases may begin and traffic may grow, at most 16.
	// When unset, both may happen at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`

	// freezes are periods in which no release begins and no traffic grows, even within a
	// window, at most 16. When unset, there are none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Freezes []FreezeWindow `json:"freezes,omitempty"`

	// whenClosed says what a release in progress does outside the windows and within a freeze:
	// Hold (the default) stays at its weight, Finish goes on to the end. In either case no
	// release begins. A Freeze of the cluster always holds.
	// +optional
	// +kubebuilder:default=Hold
	WhenClosed ClosedPolicy `json:"whenClosed,omitempty"`
}

// ClosedPolicy says what a release in progress does in a closed time.
//
// +kubebuilder:validation:Enum=Hold;Finish
type ClosedPolicy string

// What a release in progress does in a closed time.
const (
	// ClosedHold stays at its weight.
	ClosedHold ClosedPolicy = "Hold"
	// ClosedFinish goes on to the end.
	ClosedFinish ClosedPolicy = "Finish"
)

// Window is a recurring period.
type Window struct {
	// start is when it begins, as a cron expression. A start that falls into the hour that
	// daylight saving skips moves to the time of the change; one in the hour that is repeated
	// counts once, at the first of the two times.
	// +required
	Start CronExpression `json:"start"`

	// duration is how long it lasts, in elapsed time: daylight saving does not make it
	// longer or shorter. More than zero.
	// +required
	Duration Duration `json:"duration"`
}

// FreezeWindow is a recurring period in which nothing moves.
type FreezeWindow struct {
	// start is when it begins, as a cron expression.
	// +required
	Start CronExpression `json:"start"`

	// duration is how long it lasts, in elapsed time: daylight saving does not make it
	// longer or shorter. More than zero.
	// +required
	Duration Duration `json:"duration"`

	// reason is shown to users who wait.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// Freeze stops releases in many namespaces at once: none begins, and none gets
// more traffic. Rolling back goes on. It is for cluster admins.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=serin
// +kubebuilder:printcolumn:name="In force",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].status`
// +kubebuilder:printcolumn:name="Next change",type=string,JSONPath=`.status.nextChangeTime`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from`,priority=1
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`,priority=1
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.recurring.start`,priority=1
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.recurring.duration`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Freeze struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when and where nothing moves.
	// +required
	Spec FreezeSpec `json:"spec"`

	// status says whether the Freeze is in force. Only Serin writes it.
	// +optional
	Status FreezeStatus `json:"status,omitzero"`
}

// FreezeList is a list of Freezes.
//
// +kubebuilder:object:root=true
type FreezeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Freeze `json:"items"`
}

// FreezeSpec says when and where nothing moves. The patterns of its times refuse
// what the format date-time takes and metav1.Time can't read ("t" and "z" in small
// letters, offsets of more than a day): one such object would hide all others.
//
// +kubebuilder:validation:XValidation:rule="!has(self.recurring) || !has(self.from) && !has(self.until)",message="spec: recurring excludes from and until; keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.until) || self.from < self.until",message="spec.until: must be after spec.from; correct one of them"
type FreezeSpec struct {
	// reason is shown to users who wait.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`

	// from is when a single freeze begins. When unset, it is in force from its creation
	// on.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	From *metav1.Time `json:"from,omitempty"`

	// until is when a single freeze ends. When unset, it lasts until the Freeze is
	// deleted.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Until *metav1.Time `json:"until,omitempty"`

	// recurring repeats the freeze. It excludes from and until.
	// +optional
	Recurring *RecurringFreeze `json:"recurring,omitempty"`

	// namespaceSelector chooses the namespaces by their labels. When unset or empty, the Freeze
	// applies to all of them.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// FreezeStatus says whether a Freeze is in force.
type FreezeStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status
	// was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions has InForce, which is True while the Freeze stops releases. Its
	// reasons are Active and InvalidSpec when True, Scheduled and Ended when False.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// nextChangeTime is when InForce next changes by itself. When unset, no such time is known.
	// +optional
	NextChangeTime *metav1.Time `json:"nextChangeTime,omitempty"`
}

// ConditionInForce is True while a Freeze stops releases.
const ConditionInForce = "InForce"

// Reasons of the condition InForce. A Freeze that can't be read is in force with the
// reason InvalidSpec.
const (
	// ReasonActive: the Freeze stops releases.
	ReasonActive Reason = "Active"
	// ReasonScheduled: the Freeze begins later, or begins again.
	ReasonScheduled Reason = "Scheduled"
	// ReasonEnded: the Freeze has ended, or no start is known.
	ReasonEnded Reason = "Ended"
)

// RecurringFreeze is a recurring period in which nothing moves.
type RecurringFreeze struct {
	// timeZone is a name of the IANA time zone database in which start is read.
	// Default "UTC".
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// start is when it begins, as a cron expression.
	// +required
	Start CronExpression `json:"start"`

	// duration is how long it lasts, in elapsed time: daylight saving does not make it
	// longer or shorter. More than zero.
	// +required
	Duration Duration `json:"duration"`
}
