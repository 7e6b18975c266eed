// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"time"
)

// Point is one number of a time series.
type Point struct {
	At time.Time
	// Value is nil where the series has a gap.
	Value *float64
}

// Latest returns the newest number of the only series. A gap at the end is left out:
// most systems deliver the present minute before it is complete.
//
//	series          then
//	none            NoData
//	more than one   SeveralSeries
//	no number       NoData
//	too old         Stale, when the newest number is older than maxAge
func Latest(series [][]Point, at time.Time, maxAge time.Duration) (Sample, error) {
	if len(series) > 1 {
		return Sample{}, Several(len(series))
	}
	var newest Point
	for _, points := range series {
		for _, p := range points {
			if p.Value != nil && !p.At.Before(newest.At) {
				newest = p
			}
		}
	}
	if newest.Value == nil {
		return Sample{}, Empty()
	}
	if age := at.Sub(newest.At); age > maxAge {
		return Sample{}, &MissingError{Reason: Stale, Message: fmt.Sprintf("the newest number is %s old; at most %s is accepted", age.Truncate(time.Second), maxAge)}
	}
	return Finite(newest.At, *newest.Value)
}

// Empty is the MissingError for an answer without any number.
func Empty() error {
	return &MissingError{Reason: NoData, Message: "the answer is empty; check that the query finds something"}
}

// Several is the MissingError for more than one series.
func Several(n int) error {
	return &MissingError{Reason: SeveralSeries, Message: fmt.Sprintf("the answer has %d series; write a query that gives one, with a sum for instance", n)}
}

// Wrong is the MissingError for an answer that breaks the protocol; what is how, in words
// that do not come from the answer.
func Wrong(what string) error {
	return &MissingError{Reason: Malformed, Message: "the answer " + what}
}
