// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"
	"time"
)

const (
	// settleFor is how long events and the last reports take to be written.
	settleFor = 3 * time.Second
	quietFor  = 30 * time.Second
)

// TestNothingToDoMeansNoRequests counts what the operator asks of the API server
// while nothing happens: nothing but the watches that are open.
func TestNothingToDoMeansNoRequests(t *testing.T) {
	s := website(t, newMeasurements())
	checkQuiet(t, quietFor)
	if len(s.pods()) == 0 {
		t.Error("there is no website")
	}
}

func TestASplitInEffectCostsNoRequests(t *testing.T) {
	birds(t)
	checkQuiet(t, 5*time.Second)
}

func checkQuiet(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(settleFor)
	since := time.Now()
	<-time.After(d)
	requests, watches := operatorRequests(t, since)
	if len(requests) > 0 {
		t.Errorf("%d requests in %s while nothing happened:\n%s", len(requests), d, strings.Join(requests, "\n"))
	}
	t.Logf("%d requests, and %d watches renewed, in %s", len(requests), watches, d)
}
