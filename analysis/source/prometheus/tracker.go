// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"strconv"

	"github.com/prometheus/common/model"
)

// tracker numbers the runs of a target. As soon as one of its counters goes backwards,
// vanishes, or comes back, the sum over the target is no counter any more: from then on
// the target has another name, and is measured afresh. A series that appears for the
// first time, as that of the first failure does, began at zero and changes nothing.
//
// It is a value: begin makes the successor, which end returns.
type tracker struct {
	runs map[string]run
	// next numbers the runs, so that no name is given twice.
	next int
}

type run struct {
	number int
	values map[model.Fingerprint]float64
	// gone are series that vanished; one that comes back did not begin at zero.
	gone map[model.Fingerprint]bool
}

// naming is one round.
type naming struct {
	before map[string]run
	after  tracker
}

func (t tracker) begin() *naming {
	return &naming{before: t.runs, after: tracker{runs: map[string]run{}, next: t.next}}
}

// end forgets the targets that were not named in this round. One that comes back was
// not in the scrape before, and begins afresh anyway.
func (n *naming) end() tracker { return n.after }

// name is what a target is called while its counters only grow.
func (n *naming) name(key string, values map[model.Fingerprint]float64) string {
	l, known := n.before[key]
	if !known || l.ended(values) {
		l.number = n.after.next
		n.after.next++
	}
	l.gone = l.missing(values)
	l.values = values
	n.after.runs[key] = l
	return key + "#" + strconv.Itoa(l.number)
}

func (l run) ended(values map[model.Fingerprint]float64) bool {
	for series, before := range l.values {
		if now, found := values[series]; !found || now < before {
			return true
		}
	}
	for series := range values {
		if l.gone[series] {
			return true
		}
	}
	return false
}

// missing are the series that were there once and are not now.
func (l run) missing(values map[model.Fingerprint]float64) map[model.Fingerprint]bool {
	gone := map[model.Fingerprint]bool{}
	for series := range l.values {
		if _, found := values[series]; !found {
			gone[series] = true
		}
	}
	for series := range l.gone {
		if _, found := values[series]; !found && len(gone) < maxGone {
			gone[series] = true
		}
	}
	return gone
}

// maxGone bounds the memory of a target whose labels change all the time.
const maxGone = 10_000
