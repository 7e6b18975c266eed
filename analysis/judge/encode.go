// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/serin-dev/serin/analysis"
)

// stateVersion is the first word of a stored State. It changes whenever a
// State of before would be read wrongly.
const stateVersion = "serin-judge/1"

// stateSize is the most bytes that MarshalText returns.
const stateSize = 4096

// MarshalText stores the state in one line, at most 4 KB, from which
// UnmarshalText makes an equal State. It never fails.
func (s State) MarshalText() ([]byte, error) {
	out := append(make([]byte, 0, 512), stateVersion...)
	(&s).fields(func(f field) {
		out = append(out, ' ')
		switch {
		case f.float != nil:
			out = strconv.AppendFloat(out, *f.float, 'g', -1, 64)
		case f.count != nil:
			out = strconv.AppendInt(out, *f.count, 10)
		case f.key != nil:
			out = strconv.AppendUint(out, *f.key, 16)
		}
	})
	return append(append(out, " "...), failures.encode(s.failed)...), nil
}

// UnmarshalText reads what MarshalText wrote. Anything else is an error and
// leaves the state as it was: evidence that cannot be read must not be taken
// for none.
func (s *State) UnmarshalText(text []byte) error {
	if len(text) > stateSize {
		return fmt.Errorf("analysis state: %d bytes, at most %d are possible; remove it to analyse from the beginning", len(text), stateSize)
	}
	words := strings.Split(string(text), " ")
	if words[0] != stateVersion {
		return fmt.Errorf("analysis state: written by another version, not %q; remove it to analyse from the beginning", stateVersion)
	}
	var (
		read State
		i    int
		errs error
	)
	read.fields(func(f field) {
		if i++; i >= len(words) || errs != nil {
			errs = errors.Join(errs, errTruncated)
			return
		}
		errs = f.parse(words[i])
	})
	if errs == nil && len(words) != i+2 {
		errs = errTruncated
	}
	if errs == nil {
		read.failed, errs = failures.decode(words[i+1])
	}
	if errs == nil && !read.plausible() {
		errs = errors.New("values that cannot be")
	}
	if errs != nil {
		return fmt.Errorf("analysis state: %w; remove it to analyse from the beginning", errs)
	}
	*s = read
	return nil
}

var errTruncated = errors.New("the wrong number of values")

// field is one stored value; exactly one pointer is set.
type field struct {
	float *float64
	count *int64
	key   *uint64
}

func (f field) parse(word string) (err error) {
	switch {
	case f.float != nil:
		*f.float, err = strconv.ParseFloat(word, 64)
	case f.count != nil:
		*f.count, err = strconv.ParseInt(word, 10, 64)
	case f.key != nil:
		*f.key, err = strconv.ParseUint(word, 16, 64)
	}
	return err
}

// fields visits every stored value in the one order that both directions use.
func (s *State) fields(visit func(field)) {
	count := func(values ...*int64) {
		for _, v := range values {
			visit(field{count: v})
		}
	}
	small := func(v *int32) {
		wide := int64(*v)
		visit(field{count: &wide})
		*v = int32(min(max(wide, math.MinInt32), math.MaxInt32))
	}
	count(&s.first, &s.last)
	small(&s.weight)
	visit(field{float: &s.process.requests})
	visit(field{float: &s.process.failures})
	visit(field{float: &s.process.spent})
	for j := range s.process.mass {
		visit(field{float: &s.process.mass[j]})
	}
	count(&s.step.start, &s.step.windows,
		&s.step.canary.requests, &s.step.canary.failures,
		&s.step.stable.requests, &s.step.stable.failures)
	for i := range s.limits {
		l := &s.limits[i]
		visit(field{key: &l.key})
		count(&l.share.Total, &l.share.Within, &l.share.Beyond)
		small(&l.missed)
		phase := int64(l.phase)
		visit(field{count: &phase})
		l.phase = outcome(min(max(phase, 0), math.MaxUint8))
	}
	visit(field{key: &s.failedLimit})
}

// plausible reports whether Next could have made the state.
func (s *State) plausible() bool {
	ok := s.first >= 0 && s.last >= s.first && s.weight >= 0 && s.weight <= 100 &&
		s.process.plausible() && s.step.windows >= 0 && s.step.canary.plausible() && s.step.stable.plausible()
	for _, l := range s.limits {
		ok = ok && l.plausible()
	}
	return ok
}

func (p process) plausible() bool {
	ok := finite(p.requests) && finite(p.failures) && p.failures <= p.requests && finite(p.spent) && p.spent <= 1+1e-9
	for _, mass := range p.mass {
		ok = ok && finite(mass) && mass <= maxMass+1
	}
	return ok
}

func (t tally) plausible() bool { return t.failures >= 0 && t.failures <= t.requests }

func (l limitState) plausible() bool {
	return l.phase <= undecided && l.missed >= 0 && l.missed <= maxFailureLimit && plausibleShare(l.share)
}

func plausibleShare(s analysis.Share) bool {
	return s.Within >= 0 && s.Beyond >= 0 && s.Within <= s.Total && s.Beyond <= s.Total-s.Within
}

// finite reports whether x is a number that is not negative.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// failures are the reasons that a State can have failed for, as stored.
var failures = reasonCodes{"-": "", "worse": ReasonWorseThanStable, "limit": ReasonLimitMissed}

type reasonCodes map[string]Reason

func (c reasonCodes) encode(r Reason) string {
	for word, reason := range c {
		if reason == r {
			return word
		}
	}
	return "-"
}

func (c reasonCodes) decode(word string) (Reason, error) {
	r, ok := c[word]
	if !ok {
		return "", fmt.Errorf("unknown outcome %q", word)
	}
	return r, nil
}
