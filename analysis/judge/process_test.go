// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Everything around the single bets (base rate from earlier outcomes, stakes
// over time, the cap, the start-up phase) must keep the expectation at most 1.
// All 6,561 outcomes of four windows are played through Config.Next.
func TestTheExpectedEvidenceNeverExceedsOneOverEveryOutcomeOfFourWindows(t *testing.T) {
	for _, tt := range []struct {
		name    string
		startup Startup
		every   time.Duration
		truth   [4]rates
	}{
		{"equal versions", Startup{}, 5 * time.Second, [4]rates{{.1, .1}, {.1, .1}, {.1, .1}, {.1, .1}}},
		{"on the edge of the null", Startup{}, 5 * time.Second, [4]rates{{.1, .111}, {.1, .111}, {.1, .111}, {.1, .111}}},
		{"on the edge, while the base rate drifts", Startup{}, time.Minute, [4]rates{{.001, .0021}, {.5, .551}, {.2, .221}, {0, .001}}},
		{"on the edge of the start-up phase and after it", Startup{For: 10 * time.Second, Tolerate: .25}, 5 * time.Second, [4]rates{{.1, .361}, {.2, .471}, {.1, .111}, {.2, .221}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Defaults()
			c.Startup = tt.startup
			got := expectedEvidence(c, State{}, 0, tt.every, tt.truth[:])
			t.Logf("expected evidence: %v", got)
			if got > 1+1e-9 {
				t.Errorf("expected evidence = %v, want at most 1", got)
			}
			if got < .5 {
				t.Errorf("expected evidence = %v, want a bet worth making", got)
			}
		})
	}
}

func expectedEvidence(c Config, s State, at, every time.Duration, truth []rates) float64 {
	if len(truth) == 0 {
		return s.Evidence()
	}
	const n = 2
	var sum float64
	for kc := range n + 1 {
		for ks := range n + 1 {
			p := binomial(n, kc, truth[0].c) * binomial(n, ks, truth[0].s)
			start := time.Unix(1_700_000_000, 0).Add(at)
			next, _ := c.Next(s, analysis.Window{
				Start: start, End: start.Add(every), Weight: 50,
				Canary: analysis.Arm{Requests: n, Failures: int64(kc)},
				Stable: analysis.Arm{Requests: n, Failures: int64(ks)},
			})
			sum += p * expectedEvidence(c, next, at+every, every, truth[1:])
		}
	}
	return sum
}

func TestTheStakeFollowsItsTimetableAndIsNeverUsedUp(t *testing.T) {
	warm := Startup{For: 15 * time.Second, Tolerate: .25}
	for _, tt := range []struct {
		name    string
		at      time.Duration
		startup Startup
		want    float64
	}{
		{"half at once", 0, Startup{}, .5},
		{"nothing more within the first minute", 59 * time.Second, Startup{}, .5},
		{"a twentieth each minute", 3 * time.Minute, Startup{}, .65},
		{"the regular part ends after eight minutes", 8 * time.Minute, Startup{}, .9},
		{"the ninth minute is still a full one", 9 * time.Minute, Startup{}, .95},
		{"a quarter at once with a start-up phase", 14 * time.Second, warm, .25},
		{"the most at its end", 15 * time.Second, warm, .65},
		{"less each minute", 2 * time.Minute, warm, .72},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := stakeDue(tt.at, tt.startup); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("stakeDue(%v) = %v, want %v", tt.at, got, tt.want)
			}
		})
	}
	for _, startup := range []Startup{{}, warm} {
		last := 0.0
		for m := range 7 * 24 * 60 {
			due := stakeDue(time.Duration(m)*time.Minute, startup)
			if due <= last || due >= 1 {
				t.Fatalf("stakeDue at minute %d = %v after %v, want more, and less than 1", m, due, last)
			}
			last = due
		}
	}
}

func TestPriorsAreOneStake(t *testing.T) {
	var sum float64
	for _, p := range prior {
		sum += p
	}
	if math.Abs(sum-1) > 1e-15 {
		t.Errorf("sum of the priors = %v, want 1", sum)
	}
	if got := (State{}).Evidence(); got != 1 {
		t.Errorf("evidence at the beginning = %v, want 1", got)
	}
}
