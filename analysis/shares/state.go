// SPDX-License-Identifier: Apache-2.0

package shares

// most is about how many requests are evidence. More show nothing more, and the likelihoods of
// very many differ by less than a float64 resolves.
const most = 1e10

// State is what is remembered of the shares of one release. It is a value: keep the one that
// a method returns. The zero State is the beginning of a release.
//
//	what comes                                     then
//	another weight, or another step                another test begins
//	counts that contradict the weight              there is a mismatch; what follows is counted anew
//	after that, as many again, of the right share  the mismatch is over
//
// Counting anew begins only after a mismatch, so that it does not make a first one any
// likelier.
type State struct {
	// Weight that is tested, in percent; 0 before there is any.
	Weight int32
	// Earlier is how many tests of the release ended before.
	Earlier int64
	// Counted is what both versions answered since the test began or found a mismatch.
	Counted Count
	// Found is what the mismatch was found by; zero when there is none.
	Found Count
}

// Begin ends the present test: what is counted next is tested by itself.
func (s State) Begin() State {
	if s.Counted.total()+s.Found.total() > 0 {
		s.Earlier++
	}
	return State{Earlier: s.Earlier}
}

// Add adds what both versions answered while a weight was live.
func (s State) Add(c Count, weight int32) State {
	if weight != s.Weight {
		s = s.Begin()
		s.Weight = weight
	}
	if !shared(weight) {
		return s
	}
	s.Counted = s.Counted.plus(c)
	r := assess(s.Counted, s.Weight, s.Earlier)
	switch {
	case r.Mismatch():
		s.Found, s.Counted = s.Counted, Count{}
	case r.total() >= s.Found.total() && r.within():
		s.Found = Count{}
	}
	return s
}

// Result says how the requests were shared: those that a mismatch was found by, if there is
// one, or all of the present test.
func (s State) Result() Result {
	if s.Found != (Count{}) {
		return assess(s.Found, s.Weight, s.Earlier)
	}
	return assess(s.Counted, s.Weight, s.Earlier)
}

// plus adds counts. What is too much keeps its share.
func (c Count) plus(d Count) Count {
	canary, stable := float64(c.Canary)+float64(d.Canary), float64(c.Stable)+float64(d.Stable)
	fewer := min(1, most/(canary+stable))
	return Count{Canary: int64(canary * fewer), Stable: int64(stable * fewer)}
}

// Plausible reports whether Add could have made the state. What is stored can be edited.
func (s State) Plausible() bool {
	return s.Weight >= 0 && s.Weight <= 100 && s.Earlier >= 0 && s.Counted.plausible() && s.Found.plausible()
}

func (c Count) plausible() bool {
	return c.Canary >= 0 && c.Canary <= most && c.Stable >= 0 && c.Stable <= most
}
