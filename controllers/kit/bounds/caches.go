// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// answerWait is how long the API may take to answer; the probe has five seconds.
const answerWait = 2 * time.Second

// Caches says whether the caches of the process are filled and follow the API. It is a
// probe, a collector of metrics and a runnable of the manager.
type Caches struct {
	clock   clock.PassiveClock
	answers func(context.Context) error
	filled  atomic.Bool
	counter *prometheus.CounterVec

	mu  sync.Mutex
	lag Lag
}

// NewCaches makes Caches. The function asks the API whether it is ready.
func NewCaches(clock clock.PassiveClock, answers func(context.Context) error) *Caches {
	return &Caches{clock: clock, answers: answers, counter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "serin_cache_late_reads_total", Help: "Reads that ended because the cache did not have the operator's own last write in time.",
	}, []string{"kind"})}
}

func (c *Caches) late(r Read) {
	c.counter.WithLabelValues(r.Kind).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag.Late(r, c.clock.Now())
}

func (c *Caches) caughtUp(r Read) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag.CaughtUp(r)
}

// Start is called by the manager once its caches are filled.
func (c *Caches) Start(context.Context) error {
	c.filled.Store(true)
	return nil
}

// NeedLeaderElection is false: a replica that waits for the lease has caches too.
func (c *Caches) NeedLeaderElection() bool { return false }

// Filled is the check of readiness.
func (c *Caches) Filled(*http.Request) error {
	if !c.filled.Load() {
		return errors.New("the caches are not filled yet")
	}
	return nil
}

// Follow is the check of liveness: it fails when a cache stopped following the API, which
// a restart fixes.
func (c *Caches) Follow(req *http.Request) error {
	if _, _, suspect := c.suspect(); !suspect {
		return nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), answerWait)
	defer cancel()
	answers := c.answers(ctx) == nil

	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.lag.Answered(answers, now)
	worst, since, suspect := c.lag.Suspect(now)
	if suspect && c.lag.Stuck(since, now) {
		return fmt.Errorf("the cache of %s is behind, although the API server answers: each read since %s was late", worst, since.UTC().Format(time.RFC3339))
	}
	return nil
}

func (c *Caches) suspect() (Read, time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lag.Suspect(c.clock.Now())
}

var behindDesc = prometheus.NewDesc("serin_cache_behind_seconds",
	"Time since which every read of some object of the kind was late. Absent when none is.", []string{"kind"}, nil)

// Describe is part of a collector.
func (c *Caches) Describe(out chan<- *prometheus.Desc) {
	c.counter.Describe(out)
	out <- behindDesc
}

// Collect is part of a collector.
func (c *Caches) Collect(out chan<- prometheus.Metric) {
	c.counter.Collect(out)
	c.mu.Lock()
	now := c.clock.Now()
	behind := c.lag.behind(now)
	c.mu.Unlock()
	for kind, since := range behind {
		out <- prometheus.MustNewConstMetric(behindDesc, prometheus.GaugeValue, now.Sub(since).Seconds(), kind)
	}
}
