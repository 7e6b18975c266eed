// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CanaryReleaseStatus is what Serin observed and did.
type CanaryReleaseStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status
	// was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions explain the state: Ready and Progressing, and the abnormal ones
	// Reconciling and Stalled that exist only while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// release is what Serin did with the Helm release.
	// +optional
	Release *CanaryHelmRelease `json:"release,omitempty"`

	// manifestDigest identifies the content of the canary. It is made with a key, so that
	// no value can be guessed from it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ManifestDigest string `json:"manifestDigest,omitempty"`

	// later lists objects that change only when the canary is adopted, such as
	// "Role/shop".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Later []string `json:"later,omitempty"`

	// decision is how the CanaryRelease ends, once that is certain. It does not change
	// afterwards.
	// +optional
	Decision *CanaryDecision `json:"decision,omitempty"`

	// workloads of the canary: one for each Deployment whose pods change.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Workloads []CanaryWorkload `json:"workloads,omitempty"`

	// services are those whose traffic is shared.
	// +optional
	// +listType=map
	// +listMapKey=service
	// +kubebuilder:validation:MaxItems=64
	Services []CanaryServiceStatus `json:"services,omitempty"`

	// delegation is what is programmed of the decisions of the Rollout that
	// spec.delegation names. Unset when none is named, and before the first weight is
	// programmed.
	// +optional
	Delegation *CanaryDelegationStatus `json:"delegation,omitempty"`

	// copies are objects that were made for pods of the canary, and are deleted with them.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Copies []CanaryCopy `json:"copies,omitempty"`
}

// CanaryHelmRelease is what Serin did with a Helm release.
type CanaryHelmRelease struct {
	// revision that the canary is compared with.
	// +required
	// +kubebuilder:validation:Minimum=0
	Revision int32 `json:"revision"`

	// adoptedRevision is the revision that the adoption made. Unset before it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AdoptedRevision int32 `json:"adoptedRevision,omitempty"`

	// upgradeTries is how many times Helm was called for the adoption in progress. Each call is
	// counted before it is made, so that an interrupted one counts too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpgradeTries int32 `json:"upgradeTries,omitempty"`

	// lastTryAt is when the last of these calls began or, if it is known to have failed,
	// when it failed. The next call is made some time after it.
	// +optional
	LastTryAt *metav1.MicroTime `json:"lastTryAt,omitempty"`
}

// CanaryDecision is how a CanaryRelease ends.
type CanaryDecision struct {
	// transition is Adopted or Deprecated.
	// +required
	// +kubebuilder:validation:Enum=Adopted;Deprecated
	Transition CanaryTransition `json:"transition"`

	// reason is a CamelCase word for programs.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message is a sentence for users.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`

	// time of the decision.
	// +required
	Time metav1.MicroTime `json:"time"`

	// endedAt is when nothing was left to do. Unset before that.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
}

// Over reports whether it was carried out, so that nothing changes any more. No decision is not.
func (d *CanaryDecision) Over() bool { return d != nil && d.EndedAt != nil }

// CanaryWorkload is one workload of a canary.
type CanaryWorkload struct {
	// name of the release's Deployment whose pods would change.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// replicas of the canary.
	// +required
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// readyReplicas is how many of them are ready.
	// +required
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas"`

	// handedOver is true when the Deployment has adopted the canary's pods.
	// +optional
	HandedOver bool `json:"handedOver,omitempty"`

	// rolled says why the Deployment made pods of its own at the adoption, where the
	// canary's could not be handed over.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Rolled string `json:"rolled,omitempty"`
}

// CanaryServiceStatus is how the traffic of one Service is shared.
type CanaryServiceStatus struct {
	// service is the name of the Service.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Service string `json:"service"`

	// programmed is true when every proxy serves the weights below.
	// +required
	Programmed bool `json:"programmed"`

	// proxies is the number of pods that share the traffic.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Proxies int32 `json:"proxies,omitempty"`

	// ports are the weights that were requested last.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MaxItems=64
	Ports []CanaryPortStatus `json:"ports,omitempty"`

	// traffic counts what both versions answered recently, as the proxies counted it. Unset
	// while that is not known, and when no port of the Service speaks HTTP.
	// +optional
	Traffic *CanaryTraffic `json:"traffic,omitempty"`
}

// CanaryTraffic is what both versions of a Service answered in one period, with the live
// weights.
type CanaryTraffic struct {
	// endedAt is the end of the period.
	// +required
	EndedAt metav1.MicroTime `json:"endedAt"`

	// seconds is the length of the period, 1 to 60.
	// +required
	// +kubebuilder:validation:Minimum=1
	Seconds int32 `json:"seconds"`

	// stable counts what the stable version answered.
	// +required
	Stable CanaryCounts `json:"stable"`

	// canary counts what the canary answered.
	// +required
	Canary CanaryCounts `json:"canary"`
}

// CanaryCounts count answers over HTTP, gRPC included, on all ports.
type CanaryCounts struct {
	// requests is the number of requests that were answered. Answers with a client error,
	// such as 404, are not failures.
	// +required
	// +kubebuilder:validation:Minimum=0
	Requests int64 `json:"requests"`

	// failures is how many of the requests failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	Failures int64 `json:"failures"`
}

// CanaryPortStatus is how the traffic of one port is shared.
type CanaryPortStatus struct {
	// port is the number and transport of the port, such as "80/TCP".
	// +required
	// +kubebuilder:validation:MaxLength=16
	Port string `json:"port"`

	// weight is the canary's share in percent.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// CanaryDelegationStatus is what is programmed of a Rollout's decisions.
type CanaryDelegationStatus struct {
	// weight in percent that was programmed last on every port that the Rollout decides.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// programmed is true while weight is still live and no other weight is requested.
	// +required
	Programmed bool `json:"programmed"`
}

// CanaryCopy names an object that was made for pods of a canary.
type CanaryCopy struct {
	// kind is ConfigMap, Secret or ServiceAccount.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret;ServiceAccount
	Kind string `json:"kind"`

	// name of the copy.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Names that Serin puts on objects that it makes for a CanaryRelease.
const (
	// LabelCanaryRelease names the CanaryRelease that an object was made for.
	LabelCanaryRelease = "serin.dev/canary-release"
	// AnnotationCanaryReleaseUID is the UID of that CanaryRelease: an object of the same
	// name that it did not make is never taken for its own. There is no owner reference,
	// because a CanaryRelease that is deleted in the foreground would lose its canary
	// while users still call it.
	AnnotationCanaryReleaseUID = "serin.dev/canary-release-uid"
	// AnnotationCanaryWorkload on an object names the Deployment whose canary it is for.
	AnnotationCanaryWorkload = "serin.dev/canary-of"
	// AnnotationCanaryRolls on a ReplicaSet is "true" where its pods read copies, so that
	// the Deployment can't take them over.
	AnnotationCanaryRolls = "serin.dev/canary-reads-copies"
	// AnnotationCanaryDigest on a copy is the manifestDigest that it was made for.
	AnnotationCanaryDigest = "serin.dev/canary-digest"
	// FinalizerCanaryRelease lets Serin take everything back before a CanaryRelease is gone.
	FinalizerCanaryRelease = "serin.dev/canary-release"
	// FieldManagerCanaryRelease is the owner of the fields that its controller applies.
	FieldManagerCanaryRelease = "serin-canaryrelease"
)

// Reasons of the conditions of a CanaryRelease, besides those that it has in common with
// a Rollout.
const (
	// ReasonReleaseNotFound: there is no Helm release of that name, or not that revision.
	ReasonReleaseNotFound Reason = "ReleaseNotFound"
	// ReasonReleaseNotDeployed: the revision exists and is not deployed.
	ReasonReleaseNotDeployed Reason = "ReleaseNotDeployed"
	// ReasonReleaseChanged: another user of Helm upgraded, rolled back or uninstalled the release.
	ReasonReleaseChanged Reason = "ReleaseChanged"
	// ReasonWorkloadChanged: a Deployment's pods were changed without Helm.
	ReasonWorkloadChanged Reason = "WorkloadChanged"
	// ReasonRefused: no canary can be made of what config changes.
	ReasonRefused Reason = "Refused"
	// ReasonServing: the canary gets the traffic that the spec gives it.
	ReasonServing Reason = "Serving"
	// ReasonAdopting: the release becomes what the canary is.
	ReasonAdopting Reason = "Adopting"
	// ReasonUpgradeFailed: the Helm upgrade of the adoption failed.
	ReasonUpgradeFailed Reason = "UpgradeFailed"
	// ReasonAdopted: the release is what the canary was.
	ReasonAdopted Reason = "Adopted"
	// ReasonDeprecating: the canary is being removed.
	ReasonDeprecating Reason = "Deprecating"
	// ReasonDeprecated: the canary is gone and left no trace.
	ReasonDeprecated Reason = "Deprecated"
	// ReasonRequested: a user set spec.transition, or the Rollout spec.delegation.transition.
	ReasonRequested Reason = "Requested"
)
