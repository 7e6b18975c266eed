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
		lost = func() []Finding { return slices.Concat(r.checkLost(), r.checkRefused(), r.checkLate()) }
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

// checkRefused: a Service with Serin refuses a connection only when the control does, whose
// endpoints change at the same moments. What the node was seen to lead nowhere while it exchanged
// a rule does not count, for either; of that, the Service has no more than the control.
func (r Record) checkRefused() []Finding { return r.compareRefused(r.target(), r.control()) }

func (r Record) compareRefused(targets, controls []traffic) (list []Finding) {
	target, control := r.refused(targets), r.refused(controls)
	if nowhere := target.nowhere + control.nowhere; target.nowhere > control.nowhere && !Plausible(target.nowhere, nowhere, 0.5) {
		list = append(list, found("%d connections were led nowhere, and %d of the control: more than rules that are exchanged explain", target.nowhere, control.nowhere)...)
	}
	alone := leaveOut(target.failures, control.failures, func(f, c generator.Failure) bool { return f.Time.Sub(c.Time).Abs() < moment })
	if n := target.unknown + int64(len(alone)); n > 0 {
		list = append(list, Finding{
			Text:      fmt.Sprintf("%d connections were refused, and none by the control at the same moment%s", n, latest(alone)),
			OnControl: target.unknown == 0 && allOnControl(alone, controls),
		})
	}
	return list
}

// refusals are the connections that were refused: those that the node led nowhere, the others, and
// those of which it is not known when.
type refusals struct {
	nowhere, unknown int64
	failures         []generator.Failure
}

func (r Record) refused(list []traffic) (all refusals) {
	for _, t := range list {
		failures := t.failuresOf(generator.KindRefused)
		all.unknown += t.kinds[generator.KindRefused] - int64(len(failures))
		all.failures = append(all.failures, failures...)
	}
	known := len(all.failures)
	all.failures = leaveOut(all.failures, r.Rejections, func(f generator.Failure, nowhere rejection.Rejection) bool {
		told := nowhere.Time.Sub(f.Time)
		return strings.Contains(f.Detail, nowhere.Address+":") && -moment < told && told < toldWithin
	})
	all.nowhere = int64(known - len(all.failures))
	return all
}

// leaveOut leaves out a failure for each cause that explains it.
func leaveOut[T any](failures []generator.Failure, causes []T, explains func(generator.Failure, T) bool) []generator.Failure {
	unused := slices.Clone(causes)
	return slices.DeleteFunc(slices.Clone(failures), func(f generator.Failure) bool {
		i := slices.IndexFunc(unused, func(cause T) bool { return explains(f, cause) })
		if i < 0 {
			return false
		}
		unused = slices.Delete(unused, i, i+1)
		return true
	})
}

// checkLate: nothing took much longer than usual.
func (r Record) checkLate() (list []Finding) {
	for _, t := range r.target() {
		list = append(list, t.late(r.control())...)
	}
	return list
}

// late are the answers that took long.
func (t traffic) late(controls []traffic) []Finding {
	slow := slices.DeleteFunc(t.failuresOf(generator.KindSlow), func(f generator.Failure) bool { return f.Seconds < late.Seconds() })
	if len(slow) == 0 {
		return nil
	}
	return []Finding{{
		Text:      fmt.Sprintf("%d of %d %s took %s or longer%s", len(slow), t.requests, t.what, late, latest(slow)),
		OnControl: allOnControl(slow, controls),
	}}
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
		list = append(list, target.late([]traffic{control})...)
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

const (
	// moment is how far apart two failures may be that happen at the same moment.
	moment = time.Second
	// toldWithin is how soon a busy machine tells what its node has led nowhere.
	toldWithin = 10 * time.Second
	// late is how long an answer takes of which the first packet was lost twice. One packet is lost
	// when a node leads it nowhere, and the client tries again a second later by itself.
	late = 3 * time.Second
)

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
