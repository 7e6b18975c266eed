// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// settleFor is how long the last events and reports take to be written.
const settleFor = 3 * time.Second

// Release is what releases of one size cost.
type Release struct {
	// Size is how many releases ran at once, of Replicas pods each.
	Size     int
	Replicas int32
	// Tally counts the requests of all of them.
	Tally Tally
	// CPU that the operator used.
	CPU time.Duration
	// Before is the operator's resident memory when the releases began, Peak its
	// highest until they had ended, in bytes.
	Before, Peak int64
	Reaction     Reaction
	// Changing is how long it took to change all templates, Took until the last
	// write of the operator.
	Changing, Took time.Duration
}

// Idle is what Rollouts cost that have nothing to do.
type Idle struct {
	Size     int
	Replicas int32
	For      time.Duration
	Tally    Tally
	// CPU that the operator used in that time.
	CPU time.Duration
	// Resident memory at the end, and the peak in that time and since the operator
	// started, in bytes.
	Resident, Peak, PeakSinceStart int64
	Restart                        Restart
}

// Restart is what it costs to start the operator again where nothing has to be done.
type Restart struct {
	Tally Tally
	// CPU that was used until the operator had nothing left to do, and Peak of its
	// memory in bytes.
	CPU  time.Duration
	Peak int64
}

// Report is everything that was measured.
type Report struct {
	Router   string
	Hold     time.Duration
	Releases []Release
	Idle     *Idle
	History  *History
}

// Run measures.
func Run(ctx context.Context, o Options) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{}, err
	}
	fmt.Fprintln(o.Out, "building the operator")
	p, err := build(ctx, o.Out)
	if err != nil {
		return Report{}, err
	}
	p.args = o.ManagerArgs
	report := Report{Router: string(o.Router), Hold: o.Hold}
	for _, size := range o.Sizes {
		err := o.measure(ctx, p, newFleet(fmt.Sprintf("release-%d", size), size, o.Replicas(size), o), func(ctx context.Context, m *measurement) error {
			r, err := m.release(ctx)
			report.Releases = append(report.Releases, r)
			return err
		})
		if err != nil {
			return report, fmt.Errorf("measure %d releases: %w", size, err)
		}
	}
	if o.Deployments > 0 {
		h, err := o.measureHistory(ctx, p)
		if err != nil {
			return report, fmt.Errorf("measure %d Deployments: %w", o.Deployments, err)
		}
		report.History = &h
	}
	if o.Idle == 0 {
		return report, nil
	}
	err = o.measure(ctx, p, newFleet("idle", o.Idle, idleReplicas, o), func(ctx context.Context, m *measurement) error {
		i, err := m.idle(ctx, o.IdleFor)
		report.Idle = &i
		return err
	})
	if err != nil {
		return report, fmt.Errorf("measure %d idle Rollouts: %w", o.Idle, err)
	}
	return report, nil
}

// idleReplicas is the scale of Deployments that are not released.
const idleReplicas = 1

// measurement is a fleet whose operator is running and has nothing left to do.
type measurement struct {
	crowd
	*stage
	log      string
	requests io.Writer
}

// measure sets a fleet up with an operator of its own, and gives it to use.
func (o Options) measure(ctx context.Context, p program, f fleet, use func(context.Context, *measurement) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plane := o.Plane
	if plane == nil {
		var stop func() error
		if plane, stop, err = ownPlane(ctx, o.Out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	s, err := newStage(ctx, plane, p)
	if err != nil {
		return err
	}
	operator, err := s.startOperator(o.Clock)
	if err != nil {
		return err
	}
	m := &measurement{
		stage: s, log: auditLog(plane.Dir), requests: o.Requests,
		crowd: crowd{fleet: f, operator: operator, clock: o.Clock, out: o.Out},
	}
	defer func() { m.operator.stop() }() // which may be another by then
	if m.rollouts, err = watchRollouts(ctx, s); err != nil {
		return err
	}
	if err := serveProxies(ctx, s, f); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: creating %d Rollouts of %d pods each\n", f.name, len(f.apps), f.replicas)
	if err := f.create(ctx, s.admin); err != nil {
		return err
	}
	if err := m.wait(ctx, "stable", settled); err != nil {
		return err
	}
	if err := m.sleep(ctx, settleFor); err != nil {
		return err
	}
	return use(ctx, m)
}

func (m *measurement) sleep(ctx context.Context, d time.Duration) error {
	timer := m.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release changes all templates and measures until all are promoted.
func (m *measurement) release(ctx context.Context) (Release, error) {
	r := Release{Size: len(m.apps), Replicas: m.replicas}
	from, cpu, before, err := m.begin()
	if err != nil {
		return r, err
	}
	r.Before = before
	fmt.Fprintf(m.out, "%s: releasing\n", m.name)
	began := m.clock.Now()
	if err := m.fleet.release(ctx, m.admin); err != nil {
		return r, err
	}
	r.Changing = m.clock.Since(began)
	if err := m.wait(ctx, "promoted", promoted); err != nil {
		return r, err
	}
	if err := m.sleep(ctx, settleFor); err != nil {
		return r, err
	}
	after, err := m.operator.cpu()
	if err != nil {
		return r, err
	}
	r.CPU = after - cpu
	if _, r.Peak, err = m.operator.memory(); err != nil {
		return r, err
	}
	requests, err := readLog(m.log, from)
	if err != nil {
		return r, err
	}
	if m.requests != nil {
		writeRequests(m.requests, requests)
	}
	r.Reaction, r.Took = reactions(requests), took(requests)
	r.Tally, err = tally(requests)
	return r, err
}

// took is the time from the first change of a template to the last write of the
// operator, which may be an event.
func took(requests []request) time.Duration {
	var first, last time.Time
	for i := range requests {
		r := &requests[i]
		if r.UserAgent == agentOfPeople && r.Object.Resource == "deployments" && (first.IsZero() || r.Received.Before(first)) {
			first = r.Received
		}
		if c := classify(r).Class; r.byOperator() && (c == ClassWrite || c == ClassEvent) && r.Received.After(last) {
			last = r.Received
		}
	}
	return last.Sub(first)
}

// idle measures while nothing happens.
func (m *measurement) idle(ctx context.Context, d time.Duration) (Idle, error) {
	i := Idle{Size: len(m.apps), Replicas: m.replicas, For: d}
	_, sinceStart, err := m.operator.memory()
	if err != nil {
		return i, err
	}
	from, cpu, _, err := m.begin()
	if err != nil {
		return i, err
	}
	fmt.Fprintf(m.out, "%s: watching for %s\n", m.name, d)
	if err := m.sleep(ctx, d); err != nil {
		return i, err
	}
	after, err := m.operator.cpu()
	if err != nil {
		return i, err
	}
	i.CPU = after - cpu
	if i.Resident, i.Peak, err = m.operator.memory(); err != nil {
		return i, err
	}
	i.PeakSinceStart = max(sinceStart, i.Peak)
	requests, err := readLog(m.log, from)
	if err != nil {
		return i, err
	}
	if i.Tally, err = tally(requests); err != nil {
		return i, err
	}
	i.Restart, err = m.restart(ctx)
	return i, err
}

const (
	// quietCPU in each of quietSeconds means that the operator has nothing left to do.
	quietCPU     = 50 * time.Millisecond
	quietSeconds = 5
)

// restart stops the operator and starts another.
func (m *measurement) restart(ctx context.Context) (Restart, error) {
	var r Restart
	from, err := logSize(m.log)
	if err != nil {
		return r, err
	}
	fmt.Fprintf(m.out, "%s: starting the operator again\n", m.name)
	m.operator.stop()
	if m.operator, err = m.startOperator(m.clock); err != nil {
		return r, err
	}
	if r.CPU, err = m.operator.settle(ctx); err != nil {
		return r, err
	}
	if _, r.Peak, err = m.operator.memory(); err != nil {
		return r, err
	}
	requests, err := readLog(m.log, from)
	if err != nil {
		return r, err
	}
	r.Tally, err = tally(requests)
	return r, err
}

// settle waits until the operator has nothing left to do, and returns the processor time that
// it has used.
func (o *operator) settle(ctx context.Context) (used time.Duration, err error) {
	for quiet := 0; quiet < quietSeconds; {
		select {
		case <-o.clock.After(time.Second):
		case <-ctx.Done():
			return used, context.Cause(ctx)
		}
		if err := o.running(); err != nil {
			return used, err
		}
		now, err := o.cpu()
		if err != nil {
			return used, err
		}
		if quiet++; now-used > quietCPU {
			quiet = 0
		}
		used = now
	}
	return used, nil
}

// begin notes where a measurement begins.
func (m *measurement) begin() (log int64, cpu time.Duration, resident int64, err error) {
	if err := m.operator.resetPeak(); err != nil {
		return 0, 0, 0, err
	}
	if resident, _, err = m.operator.memory(); err != nil {
		return 0, 0, 0, err
	}
	if cpu, err = m.operator.cpu(); err != nil {
		return 0, 0, 0, err
	}
	log, err = logSize(m.log)
	return log, cpu, resident, err
}
