// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/mathext"
)

// Line is what a contestant did in all runs of a cell.
type Line struct {
	// Cell and Contestant say which.
	Cell       Cell
	Contestant string
	// Runs is how many releases were played.
	Runs int
	// False is how many were rolled back though the canary was no worse so far.
	False int
	// Found is how many were rolled back because it was worse.
	Found int
	// Promoted is how many were promoted, and Early how many of them before the
	// planned end. Those that were rolled back later are among them.
	Promoted, Early int
	// Failed is how many requests the canary failed on average until the rollback
	// or the end of the release.
	Failed float64
	// RollbackTime and PromotionTime are the medians over all runs; negative when
	// fewer than half came to that. The time to a rollback counts from the
	// beginning of the defect.
	RollbackTime, PromotionTime time.Duration
}

// summarise makes the line of all outcomes of a cell.
func summarise(cell Cell, contestant string, outcomes []Outcome) Line {
	l := Line{Cell: cell, Contestant: contestant, Runs: len(outcomes)}
	var rollbacks, promotions []time.Duration
	for _, o := range outcomes {
		l.Failed += float64(o.Failed) / float64(len(outcomes))
		if o.RolledBack != never {
			l.countRollback(o)
			rollbacks = append(rollbacks, o.RolledBack-cell.Family.onset)
		}
		if o.Promoted != never {
			l.Promoted++
			if o.Promoted < Planned {
				l.Early++
			}
			promotions = append(promotions, o.Promoted)
		}
	}
	l.RollbackTime, l.PromotionTime = medianOf(rollbacks, l.Runs), medianOf(promotions, l.Runs)
	return l
}

func (l *Line) countRollback(o Outcome) {
	if l.Cell.Good() || o.RolledBack <= l.Cell.Family.onset {
		l.False++
	} else {
		l.Found++
	}
}

// medianOf is the median of n times of which those that are not given are later
// than all others; negative when it is one of those.
func medianOf(times []time.Duration, n int) time.Duration {
	middle := (n - 1) / 2
	if middle >= len(times) {
		return never
	}
	slices.Sort(times)
	return times[middle]
}

// Share is k of n, with the bound above which the true share lies in at most one
// of twenty cases (Clopper and Pearson, one-sided).
type Share struct{ K, N int }

// Rate is the share that was seen; 0 of none is 0.
func (s Share) Rate() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.K) / float64(s.N)
}

// UpperBound is the upper 95 % bound of the true share.
func (s Share) UpperBound() float64 {
	if s.K >= s.N {
		return 1
	}
	const confidence = .95
	return mathext.InvRegIncBeta(float64(s.K+1), float64(s.N-s.K), confidence)
}

// Plus pools two shares.
func (s Share) Plus(o Share) Share { return Share{s.K + o.K, s.N + o.N} }
