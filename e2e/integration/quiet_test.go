// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"
	"time"
)

const (
	// settleFor is how long nothing must have happened before it is counted.
	settleFor = 3 * time.Second
	quietFor  = 30 * time.Second
)

// TestNothingToDoMeansNoRequests counts what the operator asks of the API server
// while nothing happens: nothing but the watches that are open.
func TestNothingToDoMeansNoRequests(t *testing.T) {
	t.Parallel()
	s := website(t, newMeasurements())
	s.checkQuiet(quietFor)
	if len(s.pods()) == 0 {
		t.Error("there is no website")
	}
}

func TestASplitInEffectCostsNoRequests(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	s.checkQuiet(5 * time.Second)
}

// checkQuiet counts what concerns the scene, once nothing has for a while: how long it
// takes to write the last events and reports depends on the machine.
func (s *scene) checkQuiet(d time.Duration) {
	s.Helper()
	s.eventually("a while without requests", func(context.Context) bool {
		requests, _ := s.requestsFor(settleFor)
		return len(requests) == 0
	})
	requests, watches := s.requestsFor(d)
	if len(requests) > 0 {
		s.Errorf("%d requests in %s while nothing happened:\n%s", len(requests), d, strings.Join(requests, "\n"))
	}
	s.Logf("%d requests, and %d watches renewed, in %s", len(requests), watches, d)
}

// requestsFor are the operator's requests of some time, and how many watches it renewed.
func (s *scene) requestsFor(d time.Duration) (requests []string, watches int) {
	s.Helper()
	since := auditEnd(s.T)
	select {
	case <-s.Context().Done():
	case <-time.After(d): // nothing can be seen of requests that are not made
	}
	return s.operatorRequests(since)
}
