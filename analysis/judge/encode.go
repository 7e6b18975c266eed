// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/refusals"
	"github.com/serin-dev/serin/analysis/shares"
)

const (
	// stateVersion is the first word of a stored State. It changes whenever a
	// State of before would be read wrongly.
	stateVersion = "serin-judge/3"
	// dispersionVersion is that of a stored Dispersion.
	dispersionVersion = "serin-dispersion/1"
	// stateSize is the most bytes that MarshalText returns.
	stateSize = 4096
)

var errImplausible = errors.New("impossible values")

// MarshalText stores the state in one line, at most 4 KB, from which
// UnmarshalText makes an equal State. It never fails.
func (s State) MarshalText() ([]byte, error) { return seal(stateVersion, s.code), nil }

// UnmarshalText reads what MarshalText wrote. Anything else is an error and
// leaves the state as it was: evidence that cannot be read must not be taken
// for none. That includes what earlier versions of Serin wrote.
func (s *State) UnmarshalText(text []byte) error {
	var read State
	err := open(text, stateVersion, read.code)
	if err == nil && !read.plausible() {
		err = errImplausible
	}
	if err != nil {
		return fmt.Errorf("analysis state: %w; remove it to analyse from the beginning", err)
	}
	*s = read
	return nil
}

// MarshalText stores the dispersion in one short line. It never fails.
func (d Dispersion) MarshalText() ([]byte, error) {
	d = d.stored()
	return seal(dispersionVersion, d.code), nil
}

// UnmarshalText reads what MarshalText wrote. Anything else is an error and
// leaves the dispersion as it was.
func (d *Dispersion) UnmarshalText(text []byte) error {
	var read Dispersion
	err := open(text, dispersionVersion, read.code)
	if err == nil && !read.plausible() {
		err = errImplausible
	}
	if err != nil {
		return fmt.Errorf("dispersion: %w; remove it to measure it again", err)
	}
	*d = read
	return nil
}

func seal(version string, code func(*codec)) []byte {
	var c codec
	code(&c)
	return base64.RawURLEncoding.AppendEncode([]byte(version+" "), c.data)
}

func open(text []byte, version string, code func(*codec)) error {
	if len(text) > stateSize {
		return fmt.Errorf("%d bytes, at most %d are possible", len(text), stateSize)
	}
	word, data, _ := strings.Cut(string(text), " ")
	if word != version {
		return fmt.Errorf("written by another version, not %q", version)
	}
	binary, err := base64.RawURLEncoding.Strict().DecodeString(data)
	if err != nil {
		return err
	}
	c := codec{data: binary, reading: true}
	code(&c)
	if c.err == nil && len(c.data) > 0 {
		c.fail()
	}
	return c.err
}

// code visits every stored value.
func (s *State) code(c *codec) {
	c.count(&s.first, &s.last)
	small(c, &s.weight)
	c.flag(&s.timed)
	for i := range s.metrics {
		s.metrics[i].code(c, s.last)
	}
	c.float(&s.spent)
	c.float(&s.merged)
	s.previous.code(c)
	for i := range s.slow {
		s.slow[i].code(c)
	}
	s.dispersion.code(c)
	s.previousCanary.code(c)
	s.canary.codeFailures(c)
	s.release.code(c)
	c.rough(&s.informative.nc, &s.informative.ns)
	s.step.code(c)
	codeShares(c, &s.shares)
	for i := range s.limits {
		s.limits[i].code(c, s.last)
	}
	s.codeEnd(c)
}

// withRefusals is added to the reason in a state whose last values are of refusals, and not of
// the limit that was missed: no state has both, and one that has neither is as those that were
// stored before there were refusals.
const withRefusals = 16

func (s *State) codeEnd(c *codec) {
	reason := failures.encode(s.failed)
	if s.refusals != (refusals.State{}) {
		reason += withRefusals
	}
	small(c, &reason)
	s.failed = failures.decode(c, reason%withRefusals)
	if reason < withRefusals {
		c.key(&s.failedLimit)
		return
	}
	c.count(&s.refusals.Refused, &s.refusals.Caused, &s.refusals.Usual)
}

// code stores a metric without samples in two bytes.
func (m *metric) code(c *codec, now int64) {
	used := m.key != 0 || m.kind != unknown
	c.flag(&used)
	if !used {
		return
	}
	c.key(&m.key)
	small(c, &m.kind)
	small(c, &m.open)
	c.flag(&m.apart)
	c.near(&m.end, now)
	if m.open == 0 {
		m.before.code(c)
	}
	for i := range m.tracks[:min(max(m.open, 0), edges)] {
		m.tracks[i].code(c)
	}
}

func (p *preview) code(c *codec) {
	c.count(&p.events, &p.bad)
	used := p.bounds != 0
	c.flag(&used)
	if !used {
		return
	}
	c.key(&p.bounds)
	for i := range p.within {
		small(c, &p.within[i])
	}
}

func (t *track) code(c *codec) {
	c.float(&t.edge)
	c.rough(&t.usual, &t.stable.events, &t.stable.bad, &t.canary.events, &t.canary.bad)
	for j := range t.against {
		c.stored(&t.against[j])
	}
	for j := range t.favour {
		c.rough(&t.favour[j])
	}
}

func (t *counter) code(c *codec) { c.count(&t.requests, &t.failures) }

func (t *counter) codeNear(c *codec, other counter) {
	c.near(&t.requests, other.requests)
	c.near(&t.failures, other.failures)
}

func (d *Dispersion) code(c *codec) {
	d.codeFailures(c)
	d.Latency.code(c)
}

// codeFailures leaves the latency out, of which nothing is known of the canary.
func (d *Dispersion) codeFailures(c *codec) {
	span := int64(d.Span)
	c.count(&span)
	d.Span = time.Duration(span)
	d.Total.code(c)
	d.PerProxy.code(c)
}

func (s *Scale) code(c *codec) { c.rough(&s.Squares, &s.Expected, &s.Requests, &s.Counts) }

func (s *step) code(c *codec) {
	c.count(&s.start, &s.windows)
	s.canary.code(c)
	s.stable.code(c)
	// Of most steps, all windows are after the start-up phase.
	c.near(&s.warm.windows, s.windows)
	s.warm.canary.codeNear(c, s.canary)
	s.warm.stable.codeNear(c, s.stable)
	c.count(&s.since, &s.measured)
	c.float(&s.spent)
}

func codeShares(c *codec, s *shares.State) {
	small(c, &s.Weight)
	c.count(&s.Earlier, &s.Counted.Canary, &s.Counted.Stable, &s.Found.Canary, &s.Found.Stable)
}

func (l *limitState) code(c *codec, now int64) {
	used := l.key != 0
	c.flag(&used)
	if !used {
		return
	}
	c.key(&l.key)
	c.count(&l.share.Total, &l.share.Within, &l.share.Beyond)
	c.near(&l.at, now)
	small(c, &l.missed)
	small(c, &l.phase)
}

// failures are the reasons that a State can have failed for, as stored.
var failures = reasonCodes{"", ReasonWorseThanStable, ReasonLimitMissed, ReasonRefusedByProxies}

type reasonCodes []Reason

func (r reasonCodes) encode(reason Reason) uint8 {
	for i := range r {
		if r[i] == reason {
			return uint8(i)
		}
	}
	return 0
}

func (r reasonCodes) decode(c *codec, code uint8) Reason {
	if int(code) >= len(r) {
		c.fail()
		return ""
	}
	return r[code]
}
