// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Parse reads the schedule of a Rollout (nil: always open) and the operator's
// Freezes that concern its namespace. The error names the field of the schedule and
// the fix; the Calendar is then always closed. A Freeze that can't be read is no
// error: it is in force, and State.Reason says what to correct.
func Parse(s *v1alpha1.Schedule, freezes []v1alpha1.Freeze) (Calendar, error) {
	r := reader{Calendar: Calendar{anytime: true, zone: time.UTC}}
	if s != nil {
		if err := r.readSchedule(s); err != nil {
			return Calendar{}, err
		}
	}
	// The order of a list from a cache is random, and a message must not flap.
	sorted := slices.SortedFunc(slices.Values(freezes), func(a, b v1alpha1.Freeze) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		r.readFreeze(&sorted[i])
	}
	return r.Calendar, nil
}

// Applies reports whether a Freeze concerns a namespace with these labels. One whose
// selector can't be read concerns all.
func Applies(f *v1alpha1.Freeze, namespaceLabels map[string]string) bool {
	if f.Spec.NamespaceSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(f.Spec.NamespaceSelector)
	return err != nil || selector.Matches(labels.Set(namespaceLabels))
}

// reader makes a Calendar.
type reader struct {
	Calendar
	zones []*time.Location // that were loaded
}

func (r *reader) readSchedule(s *v1alpha1.Schedule) error {
	zone, err := r.location(s.TimeZone)
	if err != nil {
		return fmt.Errorf("spec.schedule.timeZone: %w", err)
	}
	r.zone, r.anytime = zone, len(s.Windows) == 0
	for i, w := range s.Windows {
		src, err := r.readRecurring(w.Start, w.Duration, zone)
		if err != nil {
			return fmt.Errorf("spec.schedule.windows[%d].%w", i, err)
		}
		r.windows = append(r.windows, src)
	}
	for i, f := range s.Freezes {
		src, err := r.readRecurring(f.Start, f.Duration, zone)
		if err != nil {
			return fmt.Errorf("spec.schedule.freezes[%d].%w", i, err)
		}
		r.freezes = append(r.freezes, src)
		r.freezeNames = append(r.freezeNames, quoted(i, f.Reason))
	}
	return nil
}

// unreadable is a Freeze that can't be read: in force until it is fixed.
type unreadable struct{ single }

func (r *reader) readFreeze(f *v1alpha1.Freeze) {
	name := fmt.Sprintf("%q (%s)", f.Name, f.Spec.Reason)
	src, err := r.readFreezeSpec(&f.Spec)
	if err != nil {
		name += ", which is in force because it can't be read: " + err.Error()
		src = unreadable{}
	}
	r.frozen = append(r.frozen, src)
	r.frozenNames = append(r.frozenNames, name)
}

func (r *reader) readFreezeSpec(f *v1alpha1.FreezeSpec) (source, error) {
	if f.Recurring == nil {
		return readSingle(f.From, f.Until)
	}
	if f.From != nil || f.Until != nil {
		return nil, errors.New("spec: recurring excludes from and until; keep one of them")
	}
	zone, err := r.location(f.Recurring.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("spec.recurring.timeZone: %w", err)
	}
	src, err := r.readRecurring(f.Recurring.Start, f.Recurring.Duration, zone)
	if err != nil {
		return nil, fmt.Errorf("spec.recurring.%w", err)
	}
	return src, nil
}

func readSingle(from, until *metav1.Time) (source, error) {
	var s single
	if from != nil {
		s.from = from.Time
	}
	if until != nil {
		s.until = until.Time
		if s.until.IsZero() || !s.from.Before(s.until) {
			return nil, errors.New("spec.until: must be after spec.from; correct one of them")
		}
	}
	return s, nil
}

// readRecurring reads a start and a duration; the error begins with the name of one.
func (r *reader) readRecurring(start v1alpha1.CronExpression, duration v1alpha1.Duration, zone *time.Location) (*recurring, error) {
	e, err := parseExpression(start)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	d, err := duration.Parse()
	if err != nil {
		return nil, fmt.Errorf("duration: %w", err)
	}
	if d == 0 {
		return nil, fmt.Errorf("duration: %q is zero; write how long it lasts, such as 8h", string(duration))
	}
	r.sources++
	return &recurring{
		when: e, duration: d, zone: zone, index: r.sources - 1,
		memory: minute(d/time.Minute) + longestMemory/60 + 1,
	}, nil
}

// location is the zone with a name. Loading one takes longer than all the rest.
func (r *reader) location(name string) (*time.Location, error) {
	name = cmp.Or(name, "UTC")
	if i := slices.IndexFunc(r.zones, func(l *time.Location) bool { return l.String() == name }); i >= 0 {
		return r.zones[i], nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local { // "Local" is the zone of the machine, which users don't see
		return nil, fmt.Errorf("%q is not in the time zone database; write a name such as \"Europe/Berlin\", or \"UTC\"", name)
	}
	r.zones = append(r.zones, zone)
	return zone, nil
}
