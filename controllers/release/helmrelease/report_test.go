// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func counted(at time.Time, requests int64) *v1alpha1.CanaryTraffic {
	return &v1alpha1.CanaryTraffic{
		EndedAt: metav1.NewMicroTime(at), Seconds: 15,
		Stable: v1alpha1.CanaryCounts{Requests: 99 * requests}, Canary: v1alpha1.CanaryCounts{Requests: requests, Failures: 1},
	}
}

func TestFiguresAloneAreWrittenNowAndThen(t *testing.T) {
	older, newer := counted(time.Unix(1e9, 0), 10), counted(time.Unix(1e9, 0).Add(15*time.Second), 20)
	for name, test := range map[string]struct {
		since time.Duration // since the last write; negative: none is known
		now   *v1alpha1.CanaryTraffic
		edit  func(*Observation)
		want  *v1alpha1.CanaryTraffic
		after time.Duration
	}{
		"long after the last write":                   {since: figuresEvery, now: newer, want: newer},
		"soon after the last write":                   {since: 10 * time.Second, now: newer, want: older, after: 5 * time.Second},
		"soon after it, when they are not known now":  {since: 10 * time.Second, want: older, after: 5 * time.Second},
		"later, when they are not known any more":     {since: figuresEvery},
		"after a restart":                             {since: -1, now: newer, want: newer},
		"when nothing differs":                        {since: time.Second, now: older, want: older},
		"with a clock that went back":                 {since: -time.Hour, now: newer, want: older, after: figuresEvery},
		"together with something that users act upon": {since: time.Second, now: newer, edit: func(o *Observation) { o.Services[0].Split.Proxies++ }, want: newer},
		"while weights are changing":                  {since: time.Second, now: newer, edit: func(o *Observation) { o.Services[0].Split.Programmed = false }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(30)
			w.cr.Status.Services[0].Traffic = older
			o := w.observe()
			o.ReportedAt = o.Now.Add(-test.since)
			if test.since == -1 {
				o.ReportedAt = time.Time{}
			}
			o.Services[0].Traffic = test.now
			if test.edit != nil {
				test.edit(&o)
			}
			d := Decide(o)
			if diff := cmp.Diff(test.want, d.Status.Services[0].Traffic); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
			if d.After != test.after {
				t.Errorf("it looks again after %s, want %s", d.After, test.after)
			}
		})
	}
}
