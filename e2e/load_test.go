// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/judgement"
)

// startLoad begins to call a server, and the control, whose endpoints change from now on when
// those of the Services do. It returns when all that is counted has begun.
func (s *site) startLoad(target string, services ...string) {
	s.t.Helper()
	s.apply("control.yaml")
	s.waitAvailable("control")
	s.startControl(services)
	s.apply("load.yaml", "${TARGET}", target, "${RATE}", strconv.Itoa(sizes().rate))
	s.waitAvailable("load")
	s.poll("traffic of all kinds", func() bool {
		r := s.loadReport()
		s.record.Before = r
		return r.Sent > 0 && r.Control.Requests > 0 && r.Probes.Requests > 0 && r.ControlProbes.Requests > 0 && r.Streams.Requests > 0 && r.Held.Requests > 0
	})
}

// endLoad notes what was counted until now, when nothing is under way that was sent before.
func (s *site) endLoad() {
	s.t.Helper()
	s.record.After = s.settledReport(generator.Report.SettledSince)
	if s.rejections != nil {
		if err := s.rejections.CatchUp(s.t.Context()); err != nil {
			s.t.Log("what the node leads nowhere excuses nothing:", err)
		}
		s.record.Rejections = s.rejections.Since(s.record.Before.Time)
		s.t.Logf("the node led nowhere while it exchanged rules: %v", s.record.Rejections)
	}
}

// judge fails the attempt by what was lost.
func (s *site) judge() {
	s.t.Helper()
	r := s.record
	s.t.Logf("%d requests, %d probes, %d long answers, %d requests on a connection that is held, %d requests to the control and %d probes of it",
		r.After.Sent-r.Before.Sent, r.After.Probes.Requests-r.Before.Probes.Requests, r.After.Streams.Requests-r.Before.Streams.Requests,
		r.After.Held.Requests-r.Before.Held.Requests, r.After.Control.Requests-r.Before.Control.Requests, r.After.ControlProbes.Requests-r.Before.ControlProbes.Requests)
	s.t.Logf("the slowest request to the control took %.3f s, its probes were refused %v", r.After.Control.Slowest, r.After.ControlProbes.Kinds)
	for _, span := range r.Spans {
		s.t.Logf("%s: %v of %v", span.What, span.Answers, span.Shares)
	}
	s.write(r)
	for _, f := range judgement.Judge(r) {
		s.t.note(f)
	}
}

// write keeps the record where the flag says.
func (s *site) write(r judgement.Record) {
	s.t.Helper()
	if *recorded == "" {
		return
	}
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*recorded, s.namespace+".json"), append(content, '\n'), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// enoughProxied are as many new connections to proxies as tell that none leads past them any more:
// while half of the endpoints are no proxies, that many lead to proxies by chance once in 10^12
// times, and each connection that is kept is used before so many are made.
const enoughProxied = 40

// awaitProxies returns when every connection of the load leads to the proxies. No object says when
// nodes have noticed that a Service has other endpoints, and until then some connections lead to
// the proxies and others to the Service's own pods.
func (s *site) awaitProxies() {
	s.t.Helper()
	s.poll("connections that all lead to proxies", func() bool { return s.loadReport().Proxied >= enoughProxied })
}

// awaitConnections returns when every connection of the load was made after now: those that
// are kept stay where they were led when they were made.
func (s *site) awaitConnections() {
	s.t.Helper()
	now := s.loadReport().Time
	s.poll("the end of all connections of before", func() bool { return s.loadReport().OldestConnection.After(now) })
}

// measure notes which versions answer while their shares stay, and what else is done.
func (s *site) measure(what string, shares map[string]float64, meanwhile ...func()) {
	s.t.Helper()
	first := s.settledReport(mainSettled)
	for _, do := range meanwhile {
		do()
	}
	s.poll("so many requests that they tell anything", func() bool {
		last := s.loadReport()
		span := judgement.NewSpan(what, shares, first, last)
		if span.All() < sizes().some {
			return false
		}
		s.record.Spans = append(s.record.Spans, span)
		return true
	})
}

// settledReport is what the load generator has counted when what was sent before now is settled.
func (s *site) settledReport(settled func(now, begun generator.Report) bool) (report generator.Report) {
	s.t.Helper()
	begun := s.loadReport()
	s.poll("the end of all requests under way", func() bool {
		report = s.loadReport()
		return settled(report, begun)
	})
	return report
}

// mainSettled tells whether no request of the main load is under way that was at an earlier report.
func mainSettled(now, begun generator.Report) bool { return now.Settled >= begun.Sent }

// loadReport is what the load generator has counted. On a machine that stands still it may
// not answer in time, nor be ready; what it counts is not lost by that.
func (s *site) loadReport() generator.Report {
	s.t.Helper()
	var content []byte
	var last error
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		content, last = s.core.CoreV1().Services(s.namespace).ProxyGet("http", "load", "http", "/report", nil).DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("ask the load generator: %v", last)
	}
	var report generator.Report
	if err := json.Unmarshal(content, &report); err != nil {
		s.t.Fatalf("read the load generator's report: %v", err)
	}
	return report
}
