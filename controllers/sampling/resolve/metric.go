// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Metric can be measured and judged.
type Metric struct {
	// Name is unique in the release.
	Name string
	// Field says where the metric is written, for messages.
	Field string
	// Provider is what to measure, with its arguments not filled in yet.
	Provider v1alpha1.MetricProvider
	// Shared is the ClusterMetricProvider that is asked; nil without Provider.ProviderRef.
	Shared *v1alpha1.ClusterMetricProviderSpec
	// Trusted queries may look beyond the namespace of the release.
	Trusted bool
	// Stable and Canary are the values of the arguments when that version is measured.
	// A plain number is measured of the canary.
	Stable, Canary map[string]string
	// Secrets are the arguments that come from Secrets.
	Secrets map[string]v1alpha1.SecretKeyReference
	// Min and Max are the lowest and the highest acceptable number; nil for none.
	Min, Max *float64
	// Compare says how the counters of both versions are compared; nil for a number.
	Compare *Comparison
	// Interval from one measurement to the next.
	Interval time.Duration
	// ConsecutiveFailureLimit is how many numbers in a row must be outside of Min and Max to fail.
	ConsecutiveFailureLimit int32
	// MinSamples is how many numbers a step needs before it can end.
	MinSamples int32
	// DryRun has no influence on the release.
	DryRun bool
	// Release is what is measured.
	Release Release
}

// Comparison says how the counters of two versions are compared.
type Comparison struct {
	// More is whether what counts as a failure is good.
	More bool
	// Weight of the metric's evidence; that of Serin's own proxies is 10.
	Weight int32
	// Tolerance is a fraction; nil for that of the release.
	Tolerance *float64
}

// Release is what arguments can be taken from.
type Release struct {
	Namespace, Name, Service       string
	StableService, CanaryService   string
	StableRevision, CanaryRevision string
	// UID of the Rollout, which owns Jobs.
	UID string
	// Step is the index of the present step, from 0, and Began when it did: a step that
	// begins again is measured again. Only jobs depend on them.
	Step  int32
	Began string
}

// Template is one that a Rollout names.
type Template struct {
	// Kind is AnalysisTemplate or ClusterAnalysisTemplate.
	Kind, Name string
	Spec       v1alpha1.AnalysisTemplateSpec
}

// Defaults of a metric, and the bounds of its interval.
const (
	defaultInterval                = 30 * time.Second
	minInterval                    = 5 * time.Second
	maxInterval                    = time.Hour
	maxWindow                      = 50 * time.Second
	defaultConsecutiveFailureLimit = 3
	defaultMinSamples              = 1
	defaultWeight                  = 10
)
