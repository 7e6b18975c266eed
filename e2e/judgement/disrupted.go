// SPDX-License-Identifier: Apache-2.0

package judgement

import (
	"slices"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// checkDisrupted: where the cluster itself was harmed, nothing fails but in the moments in which
// the control fails too. How it fails depends on what stands in between, so the kinds may
// differ: a request that a Service without endpoints refuses gets a 503 of a proxy before it.
func (r Record) checkDisrupted() (list []Finding) {
	var controls []generator.Failure
	for _, t := range r.control() {
		controls = append(controls, t.failures...)
	}
	for _, t := range r.target() {
		lost := slices.DeleteFunc(slices.Clone(t.failures), func(f generator.Failure) bool {
			return f.Kind == generator.KindSlow || f.Kind == generator.KindAppError // judged by itself
		})
		list = append(list, t.countUnknown(int64(len(lost)))...)
		alone := slices.DeleteFunc(lost, func(f generator.Failure) bool {
			return slices.ContainsFunc(controls, func(c generator.Failure) bool { return excuses(c, f) })
		})
		if len(alone) > 0 {
			list = append(list, found("%d of %d %s failed while the control answered%s", len(alone), t.requests, t.what, latest(alone))...)
		}
	}
	return list
}

// countUnknown finds failures that are counted, and whose time is not known.
func (t traffic) countUnknown(known int64) []Finding {
	var all int64
	for _, n := range t.kinds {
		all += n
	}
	if all <= known {
		return nil
	}
	return found("%d of %d %s failed, and only of %d it is known when", all, t.requests, t.what, known)
}

// excuses tells whether a failure of the control was at the same moment as one of the target,
// and may have the same cause. Of a Service without endpoints a node refuses one connection a
// second and leaves the others without an answer, so that one that was slow at the control
// may be refused at the target, or at the proxy that would pass it on. It breaks none.
func excuses(control, target generator.Failure) bool {
	return overlap(control, target) && (control.Kind != generator.KindSlow || class(target.Kind) != class(generator.KindReset))
}

// Lost counts what failed at the target, and at the control, of how many.
func (r Record) Lost() (target, control Loss) {
	sum := func(list []traffic) (l Loss) {
		for _, t := range list {
			l.All += t.requests
			for _, n := range t.kinds {
				l.Failed += n
			}
		}
		return l
	}
	return sum(r.target()), sum(r.control())
}

// Loss is how many requests failed, of how many.
type Loss struct{ Failed, All int64 }
