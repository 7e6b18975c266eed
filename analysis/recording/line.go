// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"math"
	"time"

	"sigs.k8s.io/json"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Line is one window of a recording. Pointers tell what is missing from what is zero:
// missing data is never good data. docs/recording.md says what each field means.
type Line struct {
	Release  *Release  `json:"release,omitempty"`
	Settings *Settings `json:"settings,omitempty"`

	// T is the end of the window, in seconds since the release began.
	T       *float64 `json:"t"`
	Seconds *float64 `json:"seconds,omitempty"`
	Weight  *int32   `json:"weight,omitempty"`
	Step    *int     `json:"step,omitempty"`
	// Live is since when the weight of the step is live, as T; nil while it is not.
	Live *float64 `json:"live,omitempty"`
	// Begun is since when a step was live that ended before any window of it was measured:
	// what the judge counts for a step begins there.
	Begun  *float64 `json:"begun,omitempty"`
	Canary *Variant `json:"canary,omitempty"`
	Stable *Variant `json:"stable,omitempty"`
	// Proxies is what came to the proxies, and in its failures what they refused.
	Proxies *Variant `json:"proxies,omitempty"`
	Samples []Sample `json:"samples,omitempty"`
	Values  []Value  `json:"values,omitempty"`

	Last    bool `json:"last,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	Holdout bool `json:"holdout,omitempty"`

	Judged *Judged `json:"judged,omitempty"`
	// Merged is of how many windows the line is the sum; 0 for one.
	Merged int `json:"merged,omitempty"`
	// Gap says why windows before this one may be missing.
	Gap Gap `json:"gap,omitempty"`
	// Resume is the state of the judge before the window, where the lines before do not
	// lead to it.
	Resume string `json:"resume,omitempty"`
}

// Release is which release a recording is of.
type Release struct {
	// Rollout is its namespace and name.
	Rollout  string    `json:"rollout"`
	Revision string    `json:"revision"`
	Began    time.Time `json:"began"`
}

// Gap is why windows are missing.
type Gap string

const (
	// GapRestarted means that the operator restarted.
	GapRestarted Gap = "Restarted"
	// GapLeftOut means that the recording got too long and its windows could not be merged.
	GapLeftOut Gap = "LeftOut"
)

// Judged is what the operator made of a window.
type Judged struct {
	// At is when the operator looked, in seconds since the release began; nil when it
	// looked only after the next window too.
	At      *float64      `json:"at,omitempty"`
	Verdict judge.Verdict `json:"verdict"`
	Reason  judge.Reason  `json:"reason"`
	Action  policy.Action `json:"action"`
	// Rollback and Promote are the evidence, to nine digits, which are the same on every
	// processor.
	Rollback float64 `json:"rollback"`
	Promote  float64 `json:"promote"`
}

// Variant is what one version answered.
type Variant struct {
	Requests *int64   `json:"requests"`
	Failures *int64   `json:"failures"`
	Latency  *Latency `json:"latency,omitempty"`
	Spread   *Spread  `json:"spread,omitempty"`
}

// Latency is an analysis.Histogram.
type Latency struct {
	LE     []float64 `json:"le"`
	Counts []int64   `json:"counts"`
}

// Spread is an analysis.Spread.
type Spread struct {
	Proxies int64   `json:"proxies"`
	Squares float64 `json:"squares"`
}

// Sample is an analysis.Sample.
type Sample struct {
	Name   string   `json:"name"`
	Start  *float64 `json:"start,omitempty"`
	Canary *Variant `json:"canary"`
	Stable *Variant `json:"stable"`
}

// Value is an analysis.Value.
type Value struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

const (
	// longest is the longest window, in seconds, and farthest how far from the start a
	// recording may reach: three years.
	longest  = 86_400
	farthest = 1e8
	maxStep  = 1000
	// lastSecond is when a release began at the latest, in Unix seconds: 131 years before
	// the judge's last one.
	lastSecond = 1 << 32
)

// Parse reads one line and checks all that can be checked of one.
func Parse(text []byte) (Line, error) {
	var l Line
	if err := Strict(text, &l); err != nil {
		return Line{}, err
	}
	if err := l.complete(); err != nil {
		return Line{}, err
	}
	if l.OnlyValues() {
		return l, nil
	}
	return l, l.Window(epoch).Validate()
}

// epoch is where a recording begins that does not say it. The judge needs times, and any
// will do.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// Strict decodes JSON. It refuses fields that are unknown, written in another case, or
// there twice.
func Strict(text []byte, into any) error {
	strict, err := json.UnmarshalStrict(text, into)
	return errors.Join(append(strict, err)...)
}

// OnlyValues reports whether no traffic was measured, so that the line has numbers of the
// user and no window.
func (l *Line) OnlyValues() bool {
	return len(l.Values) > 0 && l.Seconds == nil && l.Canary == nil && l.Stable == nil
}

// complete checks that everything is there and in range that the judge does not check
// itself.
func (l *Line) complete() error {
	if l.T == nil || !(math.Abs(*l.T) <= farthest) {
		return fmt.Errorf("t: missing or more than %g; give the end of the window in seconds since the start", float64(farthest))
	}
	if l.Step != nil && (*l.Step < 0 || *l.Step > maxStep) {
		return fmt.Errorf("step: %d; give the index of the step, from 0 to %d, or leave it out", *l.Step, maxStep)
	}
	if err := l.completeRecord(); err != nil || l.OnlyValues() {
		return err
	}
	switch {
	case l.Seconds == nil || !(*l.Seconds > 0 && *l.Seconds <= longest):
		return fmt.Errorf("seconds: missing, not above 0 or more than %d; give the length of the window", longest)
	case l.Weight == nil:
		return errors.New("weight: missing; give the canary's share of the requests in percent")
	}
	return l.completeVariants()
}

func (l *Line) completeVariants() error {
	if err := l.Canary.complete("canary"); err != nil {
		return err
	}
	if err := l.Stable.complete("stable"); err != nil {
		return err
	}
	if l.Proxies != nil {
		if err := l.Proxies.complete("proxies"); err != nil {
			return err
		}
	}
	for i, s := range l.Samples {
		field := fmt.Sprintf("samples[%d].", i)
		if s.Start != nil && !(math.Abs(*s.Start) <= farthest) {
			return fmt.Errorf("%sstart: more than %g; give seconds since the start", field, float64(farthest))
		}
		if err := errors.Join(s.Canary.complete(field+"canary"), s.Stable.complete(field+"stable")); err != nil {
			return err
		}
	}
	return nil
}

// completeRecord checks what only the operator writes.
func (l *Line) completeRecord() error {
	switch {
	case l.Release != nil && (l.Release.Began.Unix() <= farthest || l.Release.Began.Unix() >= lastSecond):
		return errors.New("release.began: missing or out of range; give the time at which the release began")
	case l.Merged < 0:
		return fmt.Errorf("merged: %d; give a number of windows, or leave it out", l.Merged)
	}
	if err := l.checkTimes(); err != nil {
		return err
	}
	if l.Settings != nil {
		if _, err := l.Settings.Stage(); err != nil {
			return fmt.Errorf("settings.%w", err)
		}
	}
	if l.Resume != "" {
		if _, err := l.resumed(); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}
	return nil
}

// checkTimes checks the times that may be left out.
func (l *Line) checkTimes() error {
	type optional struct {
		field   string
		seconds *float64
	}
	times := []optional{{"live", l.Live}, {"begun", l.Begun}}
	if l.Judged != nil {
		times = append(times, optional{"judged.at", l.Judged.At})
	}
	for _, t := range times {
		if t.seconds != nil && !(math.Abs(*t.seconds) <= farthest) {
			return fmt.Errorf("%s: more than %g; give seconds since the start, or leave it out", t.field, float64(farthest))
		}
	}
	return nil
}

func (l *Line) resumed() (judge.State, error) {
	var state judge.State
	err := state.UnmarshalText([]byte(l.Resume))
	return state, err
}

func (a *Variant) complete(field string) error {
	switch {
	case a == nil:
		return fmt.Errorf("%s: missing; give requests and failures, which may be 0", field)
	case a.Requests == nil:
		return fmt.Errorf("%s.requests: missing; give a number, which may be 0", field)
	case a.Failures == nil:
		return fmt.Errorf("%s.failures: missing; give a number, which may be 0", field)
	}
	return nil
}

// Window is the window of a line that began at a time; it is complete.
func (l *Line) Window(began time.Time) analysis.Window {
	w := analysis.Window{
		Start: after(began, *l.T-*l.Seconds), End: after(began, *l.T), Weight: *l.Weight,
		Canary: l.Canary.counted(), Stable: l.Stable.counted(), Values: l.values(),
	}
	if l.Proxies != nil {
		w.Proxies = l.Proxies.counted()
	}
	for _, s := range l.Samples {
		sample := analysis.Sample{Name: s.Name, Canary: s.Canary.counted(), Stable: s.Stable.counted()}
		if s.Start != nil {
			sample.Start = after(began, *s.Start)
		}
		w.Samples = append(w.Samples, sample)
	}
	return w
}

func (l *Line) values() []analysis.Value {
	var out []analysis.Value
	for _, v := range l.Values {
		out = append(out, analysis.Value(v))
	}
	return out
}

func (a *Variant) counted() analysis.Variant {
	out := analysis.Variant{Requests: *a.Requests, Failures: *a.Failures}
	if a.Latency != nil {
		out.Latency = &analysis.Histogram{LE: a.Latency.LE, Counts: a.Latency.Counts}
	}
	if a.Spread != nil {
		out.Spread = analysis.Spread(*a.Spread)
	}
	return out
}

// after is the time of so many seconds after another, to the nanosecond.
func after(began time.Time, seconds float64) time.Time {
	return began.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}

// since is the opposite of after.
func since(began, t time.Time) float64 { return t.Sub(began).Seconds() }
