// SPDX-License-Identifier: Apache-2.0

package judgement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/serin-dev/serin/e2e/cluster/rejection"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// shown are the failures of each kind that are told one by one.
const shown = 5

// Finding is something that must not be.
type Finding struct {
	Text string
	// OnControl tells that each failure of it happened to the control too, in the same way at
	// the same moment: Serin can't be judged by it.
	OnControl bool
}

// Judge returns what was lost. An empty list means that nothing was.
func Judge(r Record) []Finding {
	lost := r.checkDisrupted
	if !r.Disrupted {
		lost = func() []Finding { return slices.Concat(r.checkLost(), r.checkRefused()) }
	}
	return slices.Concat(r.checkLoad(), lost(), r.checkAnswers(), r.checkSpans(), r.checkPings(), r.checkLeftovers())
}

// Inconclusive tells whether findings say more of the machine than of Serin.
func Inconclusive(findings []Finding) bool {
	return len(findings) > 0 && !slices.ContainsFunc(findings, func(f Finding) bool { return !f.OnControl })
}

func found(format string, args ...any) []Finding {
	return []Finding{{Text: fmt.Sprintf(format, args...)}}
}

// checkLoad: there was a load to lose, and all that was due was sent.
func (r Record) checkLoad() (list []Finding) {
	if !r.After.StartedAt.Equal(r.Before.StartedAt) {
		list = append(list, found("the load generator restarted, so its counts are not those of the whole scenario")...)
	}
	if skipped := r.After.Skipped - r.Before.Skipped; skipped > 0 {
		list = append(list, found("%d requests could not be sent, because too many waited for an answer", skipped)...)
	}
	for _, t := range slices.Concat(r.target(), r.control()) {
		if t.requests <= 0 {
			list = append(list, found("no %s were sent, so nothing is known of lost ones", t.what)...)
		}
	}
	return list
}

// checkLost: every request was answered, each connection opened. Refused ones are judged apart.
func (r Record) checkLost() (list []Finding) {
	for _, t := range r.target() {
		t.kinds[generator.KindRepeated] = 0
		if t.what == "requests" {
			t.kinds[generator.KindRepeated] = r.After.Retried - r.Before.Retried
		}
		list = append(list, t.lost(r.control())...)
	}
	if opened := r.After.Held.Connections - r.Before.Held.Connections; r.PodsStay && opened > 0 {
		list = append(list, found("the connection that is held was replaced %d times, and its pod stayed", opened)...)
	}
	return list
}

// lost are the failures of all kinds but refusals.
func (t traffic) lost(controls []traffic) (list []Finding) {
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		n := t.kinds[kind]
		if n <= 0 || kind == generator.KindRefused {
			continue
		}
		failures := t.failuresOf(kind)
		list = append(list, Finding{
			Text:      fmt.Sprintf("%d of %d %s: %s%s", n, t.requests, t.what, kind, latest(failures)),
			OnControl: n == int64(len(failures)) && allOnControl(failures, controls),
		})
	}
	return list
}

// checkRefused: a Service with Serin refuses no more connections than the control, whose
// endpoints change at the same moments. What the node was seen to lead nowhere while it
// exchanged a rule does not count, for either.
func (r Record) checkRefused() []Finding { return r.compareRefused(r.target(), r.control()) }

func (r Record) compareRefused(targets, controls []traffic) []Finding {
	n, failures := r.refused(targets)
	others, _ := r.refused(controls)
	if n <= others {
		return nil
	}
	return []Finding{{
		Text:      fmt.Sprintf("%d connections were refused, and %d by the control%s", n, others, latest(failures)),
		OnControl: n == int64(len(failures)) && allOnControl(failures, controls),
	}}
}

// refused are the connections that were refused but for those that the node led nowhere.
func (r Record) refused(list []traffic) (n int64, failures []generator.Failure) {
	for _, t := range list {
		n += t.kinds[generator.KindRefused]
		failures = append(failures, t.failuresOf(generator.KindRefused)...)
	}
	known := int64(len(failures))
	failures = leaveOutRejected(failures, r.Rejections)
	return n - known + int64(len(failures)), failures
}

// leaveOutRejected leaves out a refused connection for each that the node rejected of the same
// address at the same moment.
func leaveOutRejected(failures []generator.Failure, rejections []rejection.Rejection) []generator.Failure {
	unused := slices.Clone(rejections)
	return slices.DeleteFunc(failures, func(f generator.Failure) bool {
		i := slices.IndexFunc(unused, func(r rejection.Rejection) bool {
			return strings.Contains(f.Detail, r.Address+":") && f.Time.Sub(r.Time).Abs() < moment
		})
		if i < 0 {
			return false
		}
		unused = slices.Delete(unused, i, i+1)
		return true
	})
}

// checkAnswers: no version fails but the one that does so on purpose.
func (r Record) checkAnswers() (list []Finding) {
	for _, v := range r.After.Versions {
		if failed := v.Failed - r.Before.Version(v.Version).Failed; failed > 0 && v.Version != r.Bad {
			list = append(list, found("%d of %d answers of %s were errors", failed, v.Requests, v.Version)...)
		}
	}
	return list
}

// checkSpans: the versions' shares of the answers were what they should be.
func (r Record) checkSpans() (list []Finding) {
	for _, s := range r.Spans {
		if s.All() == 0 {
			list = append(list, found("%s: nothing was answered", s.What)...)
		}
		for _, version := range slices.Sorted(maps.Keys(s.Answers)) {
			if _, known := s.Shares[version]; !known {
				list = append(list, found("%s: %s answered %d requests, and should have got none", s.What, version, s.Answers[version])...)
			}
		}
		for _, version := range slices.Sorted(maps.Keys(s.Shares)) {
			if share := s.Shares[version]; !Plausible(s.Answers[version], s.All(), share) {
				list = append(list, found("%s: %s answered %d of %d requests, and its share is %g", s.What, version, s.Answers[version], s.All(), share)...)
			}
		}
	}
	return list
}

// checkPings: nothing was lost of what other clients sent.
func (r Record) checkPings() (list []Finding) {
	for _, p := range r.Pings {
		target := during(p.What, generator.Series{}, p.Target, time.Time{})
		control := during(p.What+" to the control", generator.Series{}, p.Control, time.Time{})
		for _, t := range []traffic{target, control} {
			if t.requests == 0 {
				list = append(list, found("no %s were sent, so nothing is known of lost ones", t.what)...)
			}
		}
		list = append(list, target.lost([]traffic{control})...)
		list = append(list, r.compareRefused([]traffic{target}, []traffic{control})...)
	}
	return list
}

func (r Record) checkLeftovers() (list []Finding) {
	for _, text := range r.Leftovers {
		list = append(list, found("the namespace is not as it was: %s", text)...)
	}
	return list
}

func (t traffic) failuresOf(kind generator.Kind) []generator.Failure {
	return slices.DeleteFunc(slices.Clone(t.failures), func(f generator.Failure) bool { return f.Kind != kind })
}

// latest tells the last failures, for people.
func latest(failures []generator.Failure) string {
	var text strings.Builder
	for _, f := range failures[max(0, len(failures)-shown):] {
		fmt.Fprintf(&text, "; at %s after %.3f s: %s", f.Time.UTC().Format("15:04:05.000"), f.Seconds, f.Detail)
	}
	return text.String()
}

// moment is how far apart two failures may be that happen at the same moment.
const moment = time.Second

// allOnControl tells whether each failure has one of the control that is of the same class and
// overlaps it in time.
func allOnControl(failures []generator.Failure, controls []traffic) bool {
	for _, f := range failures {
		if !slices.ContainsFunc(controls, func(t traffic) bool {
			return slices.ContainsFunc(t.failures, func(c generator.Failure) bool { return class(c.Kind) == class(f.Kind) && overlap(c, f) })
		}) {
			return false
		}
	}
	return len(failures) > 0
}

// overlap tells whether two requests were under way at the same time, or almost.
func overlap(a, b generator.Failure) bool {
	begun := func(f generator.Failure) time.Time {
		return f.Time.Add(-time.Duration(f.Seconds * float64(time.Second)))
	}
	return begun(a).Before(b.Time.Add(moment)) && begun(b).Before(a.Time.Add(moment))
}

// class joins the kinds that one cause gives, depending on what it meets.
func class(kind generator.Kind) string {
	switch kind {
	case generator.KindTimeout, generator.KindNoPort, generator.KindSlow:
		return "late"
	case generator.KindReset, generator.KindClosed, generator.KindRepeated:
		return "broken"
	default:
		return string(kind)
	}
}
