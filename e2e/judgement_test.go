// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// hindrance is why the machine could not do what a test is for; the zero value when it could.
// A server that Serin has nothing to do with is the judge of that.
type hindrance struct {
	why string
	// slow of so many requests asked of that server took a second or more.
	slow, asked int64
}

// hindered looks for a hindrance between two reports of the load.
func hindered(before, after generator.Report) hindrance {
	h := hindrance{asked: after.Control.Requests - before.Control.Requests, slow: after.Control.Slow - before.Control.Slow}
	if h.slow > 0 {
		h.why = fmt.Sprintf("%d of %d requests to a server beside took a second or more, the slowest %.1f s", h.slow, h.asked, after.Control.Slowest)
	}
	return h
}

// delayed tells whether so many of the requests sent may have been late by it: no larger part
// than of the requests to the server beside.
func (h hindrance) delayed(late, sent int64) bool { return late*h.asked <= h.slow*sent }

// broke tells whether that many connections may have ended by it, where so many requests of the
// same load were late. A machine that stands still makes more of them wait than it breaks: an
// idle connection that is closed for good reason is used again by a client that could not see
// its end, and what has waited longer than anybody's limit is cut.
func (h hindrance) broke(broken, late int64) bool { return h.slow > 0 && broken <= h.slow+late }

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
// too long, or found no free port, and the few that it may have broken; the few connections that
// kube-proxy may refuse; and a load that was not the one that the test is for. others are what
// another load of the test leaves out.
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
	h := hindered(before, after)
	late := ended(generator.KindTimeout) + ended(generator.KindNoPort)
	if !h.delayed(late, sent) {
		late = 0 // Serin's, and no excuse for others
	}
	if late > 0 {
		failed -= late
		leftOut[generator.KindTimeout], leftOut[generator.KindNoPort] = true, true
		notJudged = append(notJudged, fmt.Sprintf("%s; %d of %d got no answer in time, or no free port", h.why, late, sent))
	}
	if broken := failed + repeated; broken > 0 && h.broke(broken, late) {
		notJudged = append(notJudged, fmt.Sprintf("%s; %d of %d failed otherwise (%v), and %d were repeated", h.why, failed, sent, after.Kinds, repeated))
		failed, repeated = 0, 0
	}
	if rate := float64(sent) / after.Time.Sub(before.Time).Seconds(); rate < minimumRate {
		notJudged = append(notJudged, fmt.Sprintf("this machine made %.0f requests a second, and the test is for %d at least", rate, minimumRate))
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
	fast, slow := generator.ControlReport{Requests: 200}, generator.ControlReport{Requests: 200, Slow: 1}
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
		"all were on a slow machine":         {after: report(slow, 0)},
		"all were of too few":                {after: slowly(report(fast, 0)), wantSkip: true},
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
		"more were late than of the control": {after: report(slow, 0, kind(generator.KindTimeout, 10*minimumRate)), wantFail: true},
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
