// SPDX-License-Identifier: Apache-2.0

package v1alpha4

// Condition types of a TrafficSplit whose Services have a spec.trafficDistribution
// (KEP-4444). They are absent while none of its Services has one.
const (
	// ConditionTrafficDistributionAccepted is True when the value of every Service of
	// the split that has one is a value that Kubernetes acts upon.
	ConditionTrafficDistributionAccepted = "serin.dev/TrafficDistributionAccepted"
	// ConditionTrafficDistributionProgrammed is True when every ready endpoint of the
	// root Service and of every backend has the hints by which kube-proxy prefers some
	// of them, and each backend with a weight has endpoints in the same zones.
	ConditionTrafficDistributionProgrammed = "serin.dev/TrafficDistributionProgrammed"
)

// Reasons of these conditions beside Accepted and Programmed.
const (
	// ReasonOverridden: an annotation of a Service wins over its spec.trafficDistribution.
	ReasonOverridden = "Overridden"
	// ReasonUnknownValue: Kubernetes does not act upon the value.
	ReasonUnknownValue = "UnknownValue"
	// ReasonNoEndpoints: a Service that gets requests has no ready endpoint.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonHintsMissing: an endpoint has no hint, so kube-proxy ignores those of the
	// others of its Service.
	ReasonHintsMissing = "HintsMissing"
	// ReasonZonesDiffer: a backend has no endpoint in a zone where another has some, so
	// its requests leave the zone and theirs don't.
	ReasonZonesDiffer = "ZonesDiffer"
)
