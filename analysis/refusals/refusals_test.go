// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
)

const tolerance = 0.005

var epoch = time.Unix(1_700_000_000, 0)

// window is of five seconds, in which so many requests were answered by both versions, failed in
// them, and were refused by the proxies.
func window(answered, failed, refused int64) analysis.Window {
	return analysis.Window{
		Start: epoch, End: epoch.Add(5 * time.Second), Weight: 20,
		Canary:  analysis.Variant{Requests: answered / 5, Failures: failed / 5},
		Stable:  analysis.Variant{Requests: answered - answered/5, Failures: failed - failed/5},
		Proxies: analysis.Variant{Requests: answered + refused, Failures: refused},
	}
}

// play adds a window so many times.
func (s State) play(times int, w analysis.Window) State {
	for range times {
		s = s.Add(&w, tolerance)
	}
	return s
}

func TestWhatProxiesRefuseHoldsAndRollsBackWhenItLastsAndTheyAreTheCause(t *testing.T) {
	const minute = 12 // windows
	good := window(1000, 0, 0)
	overload := window(1000, 0, 500)
	unknown := window(1000, 0, 0)
	unknown.Proxies = analysis.Variant{}
	hour := window(1000, 0, 500)
	hour.End = hour.Start.Add(time.Hour)
	hour.Canary.Requests, hour.Stable.Requests, hour.Proxies.Requests = 200_000, 800_000, 1_500_000
	hour.Proxies.Failures = 500_000
	broken, last := overload, overload
	broken.Canary.Failures = broken.Canary.Requests
	last.Canary, last.Stable = analysis.Variant{Requests: 1000}, analysis.Variant{}
	for _, tt := range []struct {
		name             string
		state            State
		holds, rollsBack bool
	}{
		{"nothing was measured", State{}, false, false},
		{"nothing is refused", State{}.play(minute, good), false, false},
		{"exactly what is tolerated is refused", State{}.play(3*minute, window(199, 0, 1)), false, false},
		{"exactly that, before anything is known", State{}.play(1, window(199, 0, 1)), false, false},
		{"a little more", State{}.play(1, window(198, 0, 1)), true, false},
		{"an overload from the first window on", State{}.play(2*minute-1, overload), true, false},
		{"the same for two minutes", State{}.play(2*minute, overload), true, true},
		{"an overload after a while", State{}.play(minute, good).play(2*minute, overload), true, true},
		{"one that is over", State{}.play(minute, overload).play(minute, good), false, false},
		{"one that is not over for as long as it was", State{}.play(minute, overload).play(minute-1, good), true, false},
		{"one that comes and goes", times(60, func(s State) State { return s.play(1, overload).play(1, good) }), false, false},
		{"one that comes more often than it goes", times(60, func(s State) State { return s.play(2, overload).play(1, good) }).play(1, overload), true, true},
		{"proxies of before say nothing of it", State{}.play(3*minute, unknown), false, false},
		{"they do not end what others said", State{}.play(minute, overload).play(3*minute, unknown), true, false},
		{"windows without a request neither", State{}.play(minute, overload).play(3*minute, window(0, 0, 0)), true, false},
		{"a few very long windows are not enough", State{}.play(5, hour), true, false},
		{"more of them are", State{}.play(6, hour), true, true},
		{"pods that answer half as much as before", State{}.play(minute, good).play(5*minute, window(500, 0, 500)), true, false},
		{"pods that answer four fifths of it, in a peak", State{}.play(minute, good).play(2*minute, window(800, 0, 500)), true, true},
		{"what they answered once counts, not what they answered last", State{}.play(1, good).play(1, window(100, 0, 0)).play(5*minute, window(500, 0, 500)), true, false},
		{"pods that got a little slower, and no more requests than ever", State{}.play(minute, good).play(5*minute, window(900, 0, 100)), true, false},
		{"no more than ever, and no whole number a minute", State{}.play(minute, seven(window(1000, 0, 0))).play(5*minute, seven(window(900, 0, 100))), true, false},
		{"pods that got slower, and clients that try again", State{}.play(minute, good).play(5*minute, window(799, 0, 700)), true, false},
		{"what is hardly more than ever", State{}.play(minute, good).play(2*minute, window(900, 0, 101)), true, true},
		{"what is more than ever only now and then", times(60, func(s State) State { return s.play(1, good).play(3, window(900, 0, 100)).play(2, window(960, 0, 60)) }), true, false},
		{"what was refused a little of was as much as came", State{}.play(1, window(996, 0, 4)).play(5*minute, window(900, 0, 100)), true, false},
		{"an overload, and then pods that got slower for as long", State{}.play(minute, good).play(minute, overload).play(minute, window(500, 0, 500)).play(minute+1, overload), true, false},
		{"pods that fail what they get", State{}.play(minute, good).play(5*minute, window(1000, 400, 500)), true, false},
		{"a canary that fails what it gets, which the comparison finds", State{}.play(5*minute, broken), true, false},
		{"the canary has all the traffic", State{}.play(2*minute, last), true, true},
		{"some that fail as before", State{}.play(minute, good).play(2*minute, window(1000, 20, 500)), true, true},
		{"a tenth of the share that is refused fails", State{}.play(2*minute, window(1000, 95, 9000)), true, true},
		{"more than that, beyond the tolerance", State{}.play(2*minute, window(1000, 100, 9000)), true, false},
		{"nothing is answered at all", State{}.play(5*minute, window(0, 0, 500)), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.state.Holds() != tt.holds || tt.state.RollsBack() != tt.rollsBack || !tt.state.Plausible() {
				t.Errorf("holds %v, rolls back %v: %+v", tt.state.Holds(), tt.state.RollsBack(), tt.state)
			}
		})
	}
}

// seven makes a window last seven seconds.
func seven(w analysis.Window) analysis.Window {
	w.End = w.Start.Add(7 * time.Second)
	return w
}

func times(n int, play func(State) State) State {
	var s State
	for range n {
		s = play(s)
	}
	return s
}

// proxies simulates two proxies, each of which takes on so many requests at once, before pods that
// answer after a time. It is the queue of requests in progress, window by window.
type proxies struct {
	limit   float64
	arrive  float64 // requests a second at both
	latency float64 // seconds
	failing float64 // share of the requests whose pods are gone; each ends with 504 after 5 s
}

// window is what the proxies count in five seconds, once arrivals and answers are level.
func (p proxies) window(random *rand.Rand) analysis.Window {
	const connecting = 5
	mean := p.latency*(1-p.failing) + connecting*p.failing
	through := min(p.arrive, 2*p.limit/mean) // Little's law
	noisy := func(rate float64) int64 {
		n := 5 * rate
		return int64(max(0, math.Round(n+random.NormFloat64()*math.Sqrt(n))))
	}
	answered, refused := noisy(through), noisy(p.arrive-through)
	if through == p.arrive {
		refused = 0
	}
	return window(answered, int64(p.failing*float64(answered)), refused)
}

func TestNoOutageOfThePodsRollsBackAndEveryLastingOverloadDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(110, 1))
	outages, overloads := 0, 0
	for range 2000 {
		usual := proxies{limit: 200 + 4000*random.Float64(), latency: 0.01 + 0.3*random.Float64()}
		fits := 2 * usual.limit / usual.latency
		usual.arrive = min(fits, 20_000) * (0.1 + 0.6*random.Float64())
		worse, outage := usual, random.IntN(3)
		switch outage {
		case 0: // pods answer more slowly: for what both versions need, or for their node
			worse.latency = 1.1 * 2 * usual.limit / usual.arrive * (1 + 10*random.Float64()*random.Float64())
		case 1: // of some pods the node is gone
			worse.failing = 0.1 + 0.9*random.Float64()
		default: // more requests come than the proxies take on
			worse.arrive = fits * (1.05 + 4*random.Float64())
		}
		var s State
		for range 12 {
			w := usual.window(random)
			s = s.Add(&w, tolerance)
		}
		if s.Holds() {
			t.Fatalf("before anything happens: %+v", s)
		}
		for range 60 {
			w := worse.window(random)
			s = s.Add(&w, tolerance)
		}
		if outage == 2 {
			overloads++
		} else if s.Refused > 0 {
			outages++
		}
		if s.RollsBack() != (outage == 2) || outage != 1 && !s.Holds() {
			t.Fatalf("%+v, usually %+v: rolls back %v, %+v", worse, usual, s.RollsBack(), s)
		}
	}
	t.Logf("%d overloads, %d outages in which proxies refuse too", overloads, outages)
	if overloads < 500 || outages < 500 {
		t.Errorf("%d overloads and %d outages", overloads, outages)
	}
}

func TestWhatIsNotMeasuredNeverChangesTheDecision(t *testing.T) {
	random := rand.New(rand.NewPCG(110, 2))
	for range 200 {
		var with, without State
		for range 100 {
			w := window(random.Int64N(1000), 0, random.Int64N(100))
			with, without = with.Add(&w, tolerance), without.Add(&w, tolerance)
			w.Proxies = analysis.Variant{}
			with = with.Add(&w, tolerance)
		}
		if with != without {
			t.Fatalf("%+v, without the windows in which nothing is known %+v", with, without)
		}
	}
}

func TestItSaysWhatIsRefusedAndWhatToDo(t *testing.T) {
	overload, good := window(1000, 0, 500), window(1000, 0, 0)
	for want, s := range map[string]State{
		"refuse 33.3 % of the requests without asking either version, for 5s of the 2m0s that roll back: give the proxies more memory or replicas":                                                  State{}.play(1, overload),
		"refuse 33.3 % of the requests without asking either version, and did for 2m0s: give the proxies more memory or replicas, and release the version again":                                    State{}.play(24, overload),
		"refused requests until a moment ago; the step goes on when they refuse none for 10s: give the proxies more memory or replicas":                                                             State{}.play(3, overload).play(1, good),
		"refuse 50.0 % of the requests without asking either version, although no more requests arrive than before: the versions answer fewer of them or fail, or proxies are missing; check these": State{}.play(1, good).play(1, window(100, 0, 100)),
	} {
		if got := s.Explain(); got != "Serin's proxies "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAStateThatWasEditedIsNotPlausible(t *testing.T) {
	for _, s := range []State{{Caused: -1}, {Caused: mostCaused + 1}, {Usual: -1}, {Usual: mostUsual + 1}, {Refused: -1}, {Refused: whole + 1}} {
		if s.Plausible() {
			t.Errorf("%+v", s)
		}
	}
	huge, none := window(0, 0, 0), window(0, 0, 0)
	huge.Proxies = analysis.Variant{Requests: analysis.MaxCount, Failures: analysis.MaxCount}
	none.Proxies = analysis.Variant{Requests: analysis.MaxCount}
	for _, w := range []analysis.Window{huge, none} {
		if s := (State{}).play(100, w); !s.Plausible() || s == (State{}) {
			t.Errorf("%+v", s)
		}
	}
	few := window(0, 0, 0)
	few.Proxies = analysis.Variant{Requests: 1_000_000, Failures: 1}
	if s := (State{}).Add(&few, 1e-9); s.Refused != 1 || !s.Holds() {
		t.Errorf("what is more than tolerated, and rounds to nothing: %+v", s)
	}
}
