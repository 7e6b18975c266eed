// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/serin-dev/serin/analysis"
)

// MaxComparisons is how many metrics of the user's one Config can compare.
const MaxComparisons = analysis.MaxSamples

// Comparison compares a metric that the user named with stable, beside
// failures and latency: one that comes as counts of events of which some are
// bad, or as a histogram of which more is worse.
type Comparison struct {
	// Name is that of the analysis.Sample. 1 to 63 characters, unique.
	Name string
	// Weight is the share of the stake that is bet on this metric, where the one
	// on failures is 1. More than 0, at most 100.
	Weight float64
	// Tolerance is the difference in the share of bad events that a user would
	// accept, as a fraction. More than 0, at most 0.5. It has no effect on a
	// histogram, which is compared as latency is.
	Tolerance float64
}

func (c Comparison) validate() error {
	switch {
	case !validName(c.Name):
		return fmt.Errorf("name: %q; give 1 to %d characters", c.Name, maxName)
	case !within(c.Weight, maxWeight):
		return fmt.Errorf("weight: %v; give more than 0 and at most %d", c.Weight, maxWeight)
	case !within(c.Tolerance, 0.5):
		return fmt.Errorf("tolerance: %v; give a fraction above 0 and at most 0.5, such as 0.005", c.Tolerance)
	}
	return nil
}

const (
	maxName   = 63
	maxWeight = 100
)

func validName(name string) bool { return name != "" && len(name) <= maxName }

func validComparisons(all []Comparison) bool {
	if len(all) > MaxComparisons {
		return false
	}
	for i, m := range all {
		if m.validate() != nil {
			return false
		}
		for _, other := range all[:i] {
			if m.Name == other.Name {
				return false
			}
		}
	}
	return true
}
