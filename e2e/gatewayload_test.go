// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

const (
	// band is how many standard deviations the middle 99.9 % of a binomial
	// distribution reach to either side, as long as it is close to a normal one.
	band = 3.2905
	// enough is how many requests make it close, at the weights of the test.
	enough = 1000
)

// window is the traffic of one stretch in which one weight was in effect all along.
type window struct {
	canary      string
	weight      *v1alpha1.WeightStatus
	first, last generator.Report
	// unproven is the latest report; whether the weight was still in effect at its
	// time, the next look tells.
	unproven *generator.Report
}

// shares are the windows of a test.
type shares struct {
	t       loud
	windows []window
}

// add looks at the traffic. The status has been read before: a report counts only
// when the status before it and the one after it say the same.
func (s *shares) add(canary string, weight *v1alpha1.WeightStatus, report func() generator.Report) {
	if weight == nil || weight.Since == nil {
		return
	}
	now := report()
	if len(s.windows) > 0 {
		w := &s.windows[len(s.windows)-1]
		if w.canary == canary && w.weight.Requested == weight.Requested && w.weight.Since.Equal(weight.Since) {
			w.last, w.unproven = *w.unproven, &now
			return
		}
	}
	s.windows = append(s.windows, window{canary: canary, weight: weight, first: now, last: now, unproven: &now})
}

// requests of a window: those of the canary, and all that a version answered.
func (w window) requests() (canary, all int64) {
	for _, version := range w.last.Versions {
		all += version.Requests - w.first.Version(version.Version).Requests
	}
	return w.last.Version(w.canary).Requests - w.first.Version(w.canary).Requests, all
}

// require fails the test when a share was not the weight, by more than chance
// explains, or when one of the weights was not measured.
func (s *shares) require(weights ...int32) {
	s.t.Helper()
	measured := map[int32]bool{}
	for _, w := range s.windows {
		canary, all := w.requests()
		if all < enough {
			continue
		}
		measured[w.weight.Requested] = true
		s.t.Logf("at weight %d %s answered %d of %d requests", w.weight.Requested, w.canary, canary, all)
		if !inBand(canary, all, float64(w.weight.Requested)/100) {
			s.t.Errorf("at weight %d %s answered %d of %d requests", w.weight.Requested, w.canary, canary, all)
		}
	}
	for _, weight := range weights {
		if !measured[weight] {
			s.t.Errorf("weight %d was not in effect for %d requests", weight, enough)
		}
	}
}

// inBand tells whether part of all is what a share of that size gives in 99.9 % of
// all cases.
func inBand(part, all int64, share float64) bool {
	mean := float64(all) * share
	return math.Abs(float64(part)-mean) <= band*math.Sqrt(mean*(1-share))+0.5
}

func TestInBand(t *testing.T) {
	for _, test := range []struct {
		name      string
		part, all int64
		share     float64
		want      bool
	}{
		{"the mean is", 400, 4000, 0.1, true},
		{"3 standard deviations are", 457, 4000, 0.1, true},
		{"4 standard deviations above are not", 476, 4000, 0.1, false},
		{"4 standard deviations below are not", 324, 4000, 0.1, false},
		{"nothing at weight 0 is", 0, 4000, 0, true},
		{"one request at weight 0 is not", 1, 4000, 0, false},
		{"one missing request at weight 100 is not", 3999, 4000, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := inBand(test.part, test.all, test.share); got != test.want {
				t.Errorf("%d of %d at %g: %t, want %t", test.part, test.all, test.share, got, test.want)
			}
		})
	}
}

// hindrance is why the machine could not do what a test is for; the zero value when it could.
type hindrance struct {
	why string
	// late are how many requests to a server beside took two seconds or more.
	late int64
}

// hindered looks for a hindrance between two reports of the load. A server that Serin has
// nothing to do with is the judge of that, and the load itself, which has to make as many
// requests as the test is for.
func hindered(before, after generator.Report) hindrance {
	sent, span := after.Sent-before.Sent, after.Time.Sub(before.Time)
	asked, slow := after.Control.Requests-before.Control.Requests, after.Control.Slow-before.Control.Slow
	rate := float64(sent) / span.Seconds()
	switch {
	case slow > 0:
		return hindrance{late: slow, why: fmt.Sprintf("%d of %d requests to a server beside took two seconds or more, the slowest %.1f s", slow, asked, after.Control.Slowest)}
	case rate < minimumRate:
		return hindrance{why: fmt.Sprintf("this machine made %.0f requests a second, and the test is for %d at least", rate, minimumRate)}
	}
	return hindrance{}
}

// explains tells whether that many connections may have ended by it, where so many requests
// of the same load were late. A machine that stands still for seconds makes more of them wait
// than it breaks: an idle connection that is closed for good reason is used again by a client
// that has not been able to see its end, and what has waited longer than anybody's limit is cut.
func (h hindrance) explains(broken, late int64) bool { return h.why != "" && broken <= h.late+late }

// With nftables, kube-proxy exchanges the rule of a Service for each change of its endpoints, and
// a connection in this moment may be rejected (docs/local-cluster.md has an experiment without
// Serin). refusedByRules are how many connections of a story may be, and refusedAtOnce how many
// within a second, since each processor may be in the middle of one when a rule is exchanged. A
// Service that Serin leaves without endpoints for a tenth of a second refuses ten.
const (
	refusedByRules = 6
	refusedAtOnce  = 2
)

// maybeByRules tells whether kube-proxy may have refused connections at some times, which are
// in order.
func maybeByRules(refused []time.Time) bool {
	for i := refusedAtOnce; i < len(refused); i++ {
		if refused[i].Sub(refused[i-refusedAtOnce]) < time.Second {
			return false
		}
	}
	return len(refused) <= refusedByRules
}

// failuresShown are the failed requests that are told one by one.
const failuresShown = 5

// requireServed fails the test when a request failed between two reports. What tells nothing
// about Serin is left out, and said: on a machine that was hindered, requests that merely waited
// too long, or found no free port, and the few that it may have broken; and the few connections
// that kube-proxy may refuse. others are what another load of the test leaves out.
func requireServed(t loud, before, after generator.Report, others ...string) {
	t.Helper()
	fails, skips := judgement(before, after)
	t.Logf("%d requests in %s, %d of them on new connections; %d failed (%v), %d were repeated on another connection; a server beside took %.3f s at most",
		after.Sent-before.Sent, after.Time.Sub(before.Time).Round(time.Second), after.Connections-before.Connections,
		after.Failed()-before.Failed(), after.Kinds, after.Retried-before.Retried, after.Control.Slowest)
	if fails != "" {
		t.Error(fails)
	}
	others = slices.DeleteFunc(append(others, skips), func(why string) bool { return why == "" })
	if len(others) > 0 {
		t.Skip("not possible here: " + strings.Join(others, "; "))
	}
}

// judgement says why a test fails for what happened between two reports, and what of it is not
// judged. "" where there is nothing to say.
func judgement(before, after generator.Report) (fails, skips string) {
	if after.Control.Requests == before.Control.Requests {
		return "the load has no control, or called it never", ""
	}
	sent, failed, repeated := after.Sent-before.Sent, after.Failed()-before.Failed(), after.Retried-before.Retried
	ended := func(kind generator.Kind) int64 { return ofKind(after, kind) - ofKind(before, kind) }
	var notJudged []string
	leftOut := map[generator.Kind]bool{}
	var refusals []time.Time
	for _, f := range after.Failures {
		if f.Kind == generator.KindRefused && f.Time.After(before.Time) {
			refusals = append(refusals, f.Time)
		}
	}
	if refused := ended(generator.KindRefused); refused > 0 && refused == int64(len(refusals)) && maybeByRules(refusals) {
		failed -= refused
		leftOut[generator.KindRefused] = true
		notJudged = append(notJudged, fmt.Sprintf("%d of %d were refused, which may be kube-proxy's exchange of rules", refused, sent))
	}
	if h := hindered(before, after); h.why != "" {
		late, unsent := ended(generator.KindTimeout), ended(generator.KindNoPort)
		failed -= late + unsent
		leftOut[generator.KindTimeout], leftOut[generator.KindNoPort] = true, true
		why := fmt.Sprintf("%s; %d of %d got no answer in time, and %d no free port", h.why, late, sent, unsent)
		if h.explains(failed+repeated, late) {
			why += fmt.Sprintf("; %d failed otherwise (%v), and %d were repeated", failed, after.Kinds, repeated)
			failed, repeated = 0, 0
		}
		notJudged = append(notJudged, why)
	}
	if failed > 0 || repeated > 0 {
		latest := slices.DeleteFunc(slices.Clone(after.Failures), func(f generator.Failure) bool { return leftOut[f.Kind] })
		fails = fmt.Sprintf("%d requests failed, %d were repeated; the latest: %+v", failed, repeated, latest[max(0, len(latest)-failuresShown):])
	}
	return fails, strings.Join(notJudged, "; ")
}

// ofKind is how many requests ended in one way without an answer of the app.
func ofKind(r generator.Report, kind generator.Kind) int64 {
	for _, k := range r.Kinds {
		if k.Kind == kind {
			return k.Count
		}
	}
	return 0
}

func TestFewRefusalsAndWhatASlowMachineDoesAreNotJudged(t *testing.T) {
	report := func(control generator.ControlReport, retried int64, kinds ...generator.KindReport) generator.Report {
		r := generator.Report{Sent: 10 * minimumRate, Retried: retried, Time: time.Unix(10, 0), Control: control, Kinds: kinds}
		for _, k := range kinds {
			r.Unanswered += k.Count
			for i := range k.Count {
				r.Failures = append(r.Failures, generator.Failure{Kind: k.Kind, Time: time.Unix(1+i, 0)})
			}
		}
		return r
	}
	fast, slow := generator.ControlReport{Requests: 9}, generator.ControlReport{Requests: 9, Slow: 1}
	atOnce := func(r generator.Report) generator.Report {
		for i := range r.Failures {
			r.Failures[i].Time = time.Unix(1, 0)
		}
		return r
	}
	untold := func(r generator.Report) generator.Report {
		r.Failures = r.Failures[1:]
		return r
	}
	slowly := func(r generator.Report) generator.Report {
		r.Sent /= 2
		return r
	}
	kind := func(k generator.Kind, n int64) generator.KindReport { return generator.KindReport{Kind: k, Count: n} }
	for name, test := range map[string]struct {
		after              generator.Report
		wantFail, wantSkip bool
	}{
		"the control was never called":       {after: report(generator.ControlReport{}, 0), wantFail: true},
		"all were answered":                  {after: report(fast, 0)},
		"one was refused":                    {after: report(fast, 0, kind(generator.KindRefused, 1)), wantSkip: true},
		"some were refused":                  {after: report(fast, 0, kind(generator.KindRefused, refusedByRules)), wantSkip: true},
		"many were refused":                  {after: report(fast, 0, kind(generator.KindRefused, refusedByRules+1)), wantFail: true},
		"two were refused at once":           {after: atOnce(report(fast, 0, kind(generator.KindRefused, refusedAtOnce))), wantSkip: true},
		"three were refused at once":         {after: atOnce(report(fast, 0, kind(generator.KindRefused, refusedAtOnce+1))), wantFail: true},
		"one was refused at an unknown time": {after: untold(report(fast, 0, kind(generator.KindRefused, 1))), wantFail: true},
		"one was refused and one reset":      {after: report(fast, 0, kind(generator.KindRefused, 1), kind(generator.KindReset, 1)), wantFail: true, wantSkip: true},
		"one was late":                       {after: report(fast, 0, kind(generator.KindTimeout, 1)), wantFail: true},
		"some were late on a slow machine":   {after: report(slow, 0, kind(generator.KindTimeout, 9), kind(generator.KindNoPort, 9)), wantSkip: true},
		"one was repeated":                   {after: report(fast, 1), wantFail: true},
		"one was repeated on a slow machine": {after: report(slow, 1), wantSkip: true},
		"one was reset on a slow machine":    {after: report(slow, 0, kind(generator.KindReset, 1)), wantSkip: true},
		"more were reset than late":          {after: report(slow, 0, kind(generator.KindReset, 6), kind(generator.KindTimeout, 4)), wantFail: true, wantSkip: true},
		"more were repeated than late":       {after: report(slow, 6, kind(generator.KindTimeout, 4)), wantFail: true, wantSkip: true},
		"one was reset and the load slow":    {after: slowly(report(fast, 0, kind(generator.KindReset, 1))), wantFail: true, wantSkip: true},
	} {
		t.Run(name, func(t *testing.T) {
			fails, skips := judgement(generator.Report{Time: time.Unix(0, 0)}, test.after)
			if (fails != "") != test.wantFail || (skips != "") != test.wantSkip {
				t.Errorf("fails %q, skips %q", fails, skips)
			}
		})
	}
}
