// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
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
	s.checkQuiet(quietFor)
	if len(s.pods()) == 0 {
		t.Error("there is no website")
	}
}

func TestASplitInEffectCostsNoRequests(t *testing.T) {
	s, _ := birds(t)
	s.checkQuiet(5 * time.Second)
}

// checkQuiet counts what concerns the scene. What tests before this one left in their
// namespaces may still change.
func (s *scene) checkQuiet(d time.Duration) {
	s.Helper()
	<-time.After(settleFor)
	since := time.Now()
	<-time.After(d)
	requests, watches := operatorRequests(s.T, since)
	requests = slices.DeleteFunc(requests, func(r string) bool {
		return strings.Contains(r, "/namespaces/") && !strings.Contains(r, "/namespaces/"+s.namespace+"/")
	})
	if len(requests) > 0 {
		s.Errorf("%d requests in %s while nothing happened:\n%s", len(requests), d, strings.Join(requests, "\n"))
	}
	s.Logf("%d requests, and %d watches renewed, in %s", len(requests), watches, d)
}
