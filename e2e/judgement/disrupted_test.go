// SPDX-License-Identifier: Apache-2.0

package judgement

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// TestOnlyWhatTheControlSuffersIsExcusedInADisruptedCluster has the cluster itself break requests.
func TestOnlyWhatTheControlSuffersIsExcusedInADisruptedCluster(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(*Record)
		want string
	}{
		"nothing fails": {harm: func(*Record) {}},
		"a proxy answers 503 while the control is refused": {harm: func(r *Record) {
			lose(r, generator.KindNoVersion, 0)
			control(r, generator.KindRefused, 0)
		}},
		"more fail than at the control, in the same moment": {harm: func(r *Record) {
			lose(r, generator.KindRefused, 0, 0, 0)
			control(r, generator.KindRefused, 0)
		}},
		"a request is late while the control is slow": {harm: func(r *Record) {
			lose(r, generator.KindTimeout, 10)
			control(r, generator.KindSlow, 0)
		}},
		"a connection is refused while the control is slow": {harm: func(r *Record) {
			lose(r, generator.KindRefused, 0)
			control(r, generator.KindSlow, 0)
		}},
		"a request is reset while the control is slow": {want: "1 of", harm: func(r *Record) {
			lose(r, generator.KindReset, 0)
			control(r, generator.KindSlow, 0)
		}},
		"one of two fails after the control": {want: "1 of", harm: func(r *Record) {
			lose(r, generator.KindRefused, 0, 0)
			control(r, generator.KindRefused, 0)
			r.After.Failures[len(r.After.Failures)-1].Time = middle(*r).Add(3 * time.Second)
		}},
		"a connection is refused, and the control never": {want: "failed while the control answered", harm: func(r *Record) {
			lose(r, generator.KindRefused, 0)
		}},
		"failures that no report has any more": {want: "only of 1 it is known when", harm: func(r *Record) {
			lose(r, generator.KindRefused, 0)
			control(r, generator.KindRefused, 0)
			r.After.Kinds = append(r.After.Kinds, generator.KindReport{Kind: generator.KindTimeout, Count: 5})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, "clean")
			r.Disrupted = true
			r.After.Control.Failures, r.After.ControlProbes.Failures = nil, nil
			test.harm(&r)
			got := texts(Judge(r))
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
