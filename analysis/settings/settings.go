// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Settings are how a step is judged, and what happens without enough evidence.
type Settings struct {
	Judge          judge.Config
	OnInconclusive v1alpha1.InconclusivePolicy
	// Early is whether a canary is promoted ahead of time when the evidence suffices.
	Early bool
}

// Of reads spec.analysis; nil and unset fields mean the defaults. The error names
// the field and the fix: it can only come from an object that the schema did not
// check.
func Of(a *v1alpha1.Analysis) (Settings, error) {
	s := Settings{Judge: judge.Defaults(), OnInconclusive: v1alpha1.InconclusiveHold}
	if a == nil {
		return s, nil
	}
	return s.With(a)
}

// With is what the fields change that an analysis sets. A limit takes the place of the one of
// the same metric. Metrics and templates of users are not looked at.
func (s Settings) With(a *v1alpha1.Analysis) (Settings, error) {
	if a.OnInconclusive != "" {
		s.OnInconclusive = a.OnInconclusive
	}
	if a.OnConclusive != "" {
		s.Early = a.OnConclusive == v1alpha1.ConclusivePromote
	}
	if a.MinRequests != nil {
		s.Judge.MinRequests = int64(*a.MinRequests)
	}
	if a.MaxCorrelatedFailures != nil {
		s.Judge.MaxCorrelatedFailures = float64(*a.MaxCorrelatedFailures)
	}
	if err := s.readPromotion(a); err != nil {
		return s, err
	}
	if err := fraction("spec.analysis.maxFalseRollback", a.MaxFalseRollback, aboveZero(50), &s.Judge.MaxFalseRollback); err != nil {
		return s, err
	}
	if err := fraction("spec.analysis.tolerance", a.Tolerance, aboveZero(50), &s.Judge.Tolerance); err != nil {
		return s, err
	}
	if err := s.addLimits(a); err != nil {
		return s, err
	}
	if err := s.Judge.Validate(); err != nil {
		return s, fmt.Errorf("spec.analysis.%w", err)
	}
	return s, nil
}

// readPromotion reads what the beginning and the end of a release take.
func (s *Settings) readPromotion(a *v1alpha1.Analysis) error {
	err := errors.Join(
		fraction("spec.analysis.maxBadPromotion", a.MaxBadPromotion, fromZero(50), &s.Judge.MaxBadPromotion),
		Duration("spec.analysis.minEvidence", a.MinEvidence, &s.Judge.MinEvidence),
	)
	if start := a.Startup; start != nil {
		err = errors.Join(
			err,
			Duration("spec.analysis.startup.for", start.For, &s.Judge.Startup.For),
			fraction("spec.analysis.startup.tolerate", start.Tolerate, fromZero(90), &s.Judge.Startup.Tolerate),
		)
	}
	return err
}

// Duration overwrites out when the value is set. The error names the field.
func Duration(field string, value v1alpha1.Duration, out *time.Duration) error {
	if value == "" {
		return nil
	}
	d, err := value.Parse()
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*out = d
	return nil
}

// ForStep is what the analysis of one step changes; nil and unset fields change
// nothing. The field is the path of the step, for errors.
func (s Settings) ForStep(a *v1alpha1.StepAnalysis, field string) (Settings, error) {
	if a == nil {
		return s, nil
	}
	if a.MinRequests != nil {
		s.Judge.MinRequests = int64(*a.MinRequests)
	}
	if a.OnInconclusive != "" {
		s.OnInconclusive = a.OnInconclusive
	}
	err := fraction(field+".analysis.tolerance", a.Tolerance, aboveZero(50), &s.Judge.Tolerance)
	if invalid := s.Judge.Validate(); invalid != nil {
		err = errors.Join(err, fmt.Errorf("%s.analysis.%w", field, invalid))
	}
	return s, err
}

// addLimits reads the absolute limits.
func (s *Settings) addLimits(a *v1alpha1.Analysis) error {
	consecutiveFailureLimit := int32(judge.DefaultConsecutiveFailureLimit)
	if a.ConsecutiveFailureLimit != nil {
		consecutiveFailureLimit = *a.ConsecutiveFailureLimit
	}
	if a.MinSuccessRate != "" {
		var rate float64
		if err := fraction("spec.analysis.minSuccessRate", a.MinSuccessRate, aboveZero(100), &rate); err != nil {
			return err
		}
		if err := s.add("spec.analysis.minSuccessRate", judge.MinSuccessRate(rate), consecutiveFailureLimit); err != nil {
			return err
		}
	}
	for i, l := range a.MaxLatency {
		field := fmt.Sprintf("spec.analysis.maxLatency[%d]", i)
		d, err := l.Max.Parse()
		if err != nil {
			return fmt.Errorf("%s.max: %w", field, err)
		}
		q, err := strconv.Atoi(strings.TrimPrefix(l.Quantile, "p"))
		if err != nil {
			return fmt.Errorf("%s.quantile: %q is not one of p50, p90 and p99", field, l.Quantile)
		}
		if err := s.add(field, judge.MaxLatency(float64(q)/100, d), consecutiveFailureLimit); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) add(field string, l judge.Limit, consecutiveFailureLimit int32) error {
	l.ConsecutiveFailureLimit = consecutiveFailureLimit
	s.Judge.Limits = slices.Clone(s.Judge.Limits)
	same := func(o judge.Limit) bool { return o.Metric == l.Metric && o.Quantile == l.Quantile }
	if i := slices.IndexFunc(s.Judge.Limits, same); i >= 0 {
		s.Judge.Limits[i] = l
	} else {
		s.Judge.Limits = append(s.Judge.Limits, l)
	}
	if err := l.Validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// bounds are those that judge.Config sets too, in the unit of the fields, which an error of the
// judge does not know.
type bounds struct {
	zero bool
	most float64
}

func aboveZero(most float64) bounds { return bounds{most: most} }
func fromZero(most float64) bounds  { return bounds{zero: true, most: most} }

// fraction overwrites out when the value is set.
func fraction[T interface {
	~string
	Fraction(zero bool, most float64) (float64, error)
}](field string, value T, within bounds, out *float64,
) error {
	if value == "" {
		return nil
	}
	f, err := value.Fraction(within.zero, within.most)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*out = f
	return nil
}
