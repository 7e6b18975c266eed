// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is one measurement.
type sample struct {
	// perSecond are requests.
	perSecond float64
	p50, p99  time.Duration
	// cpu is what the proxy took for a request: nginx and, with Serin, the agent.
	cpu time.Duration
	// busiest is the share of that which the process with most of it took: far above
	// that of an equal worker, the connections are not shared.
	busiest float64
}

// contender is one of the proxies that are compared.
type contender struct {
	name string
	port int
	pids func() ([]int, error)
	// samples are of as many requests as there can be, and paced of so few that none
	// waits for another: there the latency tells what the proxy adds.
	samples, paced []sample
}

// compare measures all in turns, so that what else the machine does meets them alike.
func (s settings) compare(ctx context.Context, dir string, backends *server) error {
	plain, err := startPlain(ctx, dir, "plain", s.workers, backends, false)
	if err != nil {
		return err
	}
	defer plain.stop()
	drawing, err := startPlain(ctx, dir, "drawing", s.workers, backends, true)
	if err != nil {
		return err
	}
	defer drawing.stop()
	others, stop, err := s.startOthers(ctx, dir, backends)
	defer stop()
	if err != nil {
		return err
	}
	ours, err := startSerin(ctx, filepath.Join(dir, "serin"), s.workers)
	if err != nil {
		return err
	}
	defer ours.stop()
	ours.ask(backends, [2]int32{90, 10})
	if err := ours.confirmed(ctx); err != nil {
		return err
	}
	contenders := []*contender{
		{name: "weights", port: plain.ports[0], pids: plain.processes},
		{name: "split_clients", port: drawing.ports[0], pids: drawing.processes},
	}
	contenders = append(contenders, others...)
	contenders = append(contenders, &contender{name: "Serin", port: ours.port, pids: ours.processes})
	script := filepath.Join(dir, "pauses.lua")
	if err := os.WriteFile(script, []byte(pauses), 0o600); err != nil {
		return err
	}
	turns := slices.Clone(contenders)
	for range s.rounds {
		slices.Reverse(turns) // whoever is first each time may have a machine that is better rested
		for _, c := range turns {
			m, err := s.measure(ctx, c)
			if err == nil {
				c.samples = append(c.samples, m)
				m, err = s.measure(ctx, c, "-s", script)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.paced = append(c.paced, m)
		}
	}
	printComparison(contenders, s)
	return nil
}

// pauses has wrk wait before each request, in milliseconds: on each connection there
// are some hundred requests a second.
const pauses = "function delay() return math.random(0, 20) end\n"

// quartiles of some numbers, the lower, the median and the upper one.
func quartiles(values []float64) (q [3]float64) {
	sorted := slices.Sorted(slices.Values(values))
	for i := range q {
		q[i] = sorted[(i+1)*(len(sorted)-1)/4]
	}
	return q
}

// property of some samples.
func property(samples []sample, value func(sample) float64) []float64 {
	var values []float64
	for _, m := range samples {
		values = append(values, value(m))
	}
	return values
}

// printComparison prints the medians of all, and the ratios of the last one to each other.
func printComparison(contenders []*contender, s settings) {
	ours := contenders[len(contenders)-1]
	others := contenders[:len(contenders)-1]
	fmt.Printf("%d rounds in turns, %s each, %d connections, %d workers; medians, and quartiles of the ratios of the rounds.\n", s.rounds, s.duration, s.connections, s.workers)
	fmt.Printf("A plain nginx without a log has weights in one upstream, or draws one of two by split_clients.\n\n%-36s", "")
	for _, c := range contenders {
		fmt.Printf(" %13s", c.name)
	}
	for _, c := range others {
		fmt.Printf("   %18s", "to "+c.name)
	}
	fmt.Println()
	row := func(name string, of func(*contender) []sample, value func(sample) float64) {
		fmt.Printf("%-36s", name)
		for _, c := range contenders {
			fmt.Printf(" %13.2f", quartiles(property(of(c), value))[1])
		}
		b := property(of(ours), value)
		for _, c := range others {
			a := property(of(c), value)
			ratios := make([]float64, len(a))
			for i := range a {
				ratios[i] = b[i] / a[i]
			}
			r := quartiles(ratios)
			fmt.Printf("   %8.2f %4.2f–%4.2f", r[1], r[0], r[2])
		}
		fmt.Println()
	}
	rate := func(m sample) float64 { return m.perSecond }
	p50 := func(m sample) float64 { return float64(m.p50) / float64(time.Millisecond) }
	p99 := func(m sample) float64 { return float64(m.p99) / float64(time.Millisecond) }
	all := func(c *contender) []sample { return c.samples }
	row("requests/s", all, rate)
	row("p50, ms", all, p50)
	row("p99, ms", all, p99)
	row("processor time for a request, µs", all, func(m sample) float64 { return float64(m.cpu) / float64(time.Microsecond) })
	row("of that by the busiest process", all, func(m sample) float64 { return m.busiest })
	paced := func(c *contender) []sample { return c.paced }
	row("with pauses: requests/s", paced, rate)
	row("with pauses: p50, ms", paced, p50)
	row("with pauses: p99, ms", paced, p99)
	fmt.Println()
}

// measure loads one of them once. more are arguments of wrk.
func (s settings) measure(ctx context.Context, c *contender, more ...string) (sample, error) {
	pids, err := c.pids()
	if err != nil {
		return sample{}, err
	}
	before, err := processorTimes(pids)
	if err != nil {
		return sample{}, err
	}
	args := append([]string{"-t1", "-c" + strconv.Itoa(s.connections), fmt.Sprintf("-d%d", int(s.duration.Seconds())), "--latency"}, more...)
	out, err := exec.CommandContext(ctx, "wrk", append(args, fmt.Sprintf("http://127.0.0.1:%d/", c.port))...).Output()
	if err != nil {
		return sample{}, fmt.Errorf("wrk: %w", err)
	}
	after, err := processorTimes(pids)
	if err != nil {
		return sample{}, err
	}
	m, requests, err := parseWrk(string(out))
	if err != nil {
		return sample{}, err
	}
	var total, most time.Duration
	for i := range pids {
		used := after[i] - before[i]
		total, most = total+used, max(most, used)
	}
	m.cpu, m.busiest = total/time.Duration(requests), float64(most)/float64(total)
	return m, nil
}

var (
	wrkRate     = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkP50      = regexp.MustCompile(`50%\s+([\d.]+(?:us|ms|s))`)
	wrkP99      = regexp.MustCompile(`99%\s+([\d.]+(?:us|ms|s))`)
	wrkRequests = regexp.MustCompile(`(\d+) requests in`)
	wrkErrors   = regexp.MustCompile(`(?m)^\s*(Socket errors|Non-2xx).*$`)
)

// parseWrk reads what wrk prints. A measurement with an error is none.
func parseWrk(out string) (m sample, requests int, err error) {
	if bad := wrkErrors.FindString(out); bad != "" {
		return m, 0, fmt.Errorf("wrk: %s", strings.TrimSpace(bad))
	}
	rate, p50, p99, count := wrkRate.FindStringSubmatch(out), wrkP50.FindStringSubmatch(out), wrkP99.FindStringSubmatch(out), wrkRequests.FindStringSubmatch(out)
	if rate == nil || p50 == nil || p99 == nil || count == nil {
		return m, 0, fmt.Errorf("wrk says something else: %s", out)
	}
	if m.perSecond, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return m, 0, err
	}
	if m.p50, err = time.ParseDuration(p50[1]); err != nil {
		return m, 0, err
	}
	if m.p99, err = time.ParseDuration(p99[1]); err != nil {
		return m, 0, err
	}
	if requests, err = strconv.Atoi(count[1]); err != nil || requests == 0 {
		return m, 0, fmt.Errorf("wrk sent %q requests: %w", count[1], err)
	}
	return m, requests, nil
}

// processes are those of an agent: this one, which does little else, and its nginx. The
// folder of that has a second name, a link, under which it is not to be found again.
func (s *serin) processes() ([]int, error) {
	masters, err := filepath.Glob(filepath.Join(string(s.dir), "nginx-*", "nginx.pid"))
	if err != nil {
		return nil, err
	}
	if len(masters) != 1 {
		return nil, fmt.Errorf("%d nginx run for an agent instead of one: %v", len(masters), masters)
	}
	text, err := os.ReadFile(masters[0])
	if err != nil {
		return nil, err
	}
	master, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, err
	}
	of, err := descendants(master)
	return append(of, os.Getpid()), err
}

// processes are those of an nginx.
func (s *server) processes() ([]int, error) { return descendants(s.command.Process.Pid) }

// descendants are a process and its children.
func descendants(pid int) ([]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, err
	}
	pids := []int{pid}
	for field := range strings.FieldsSeq(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// processorTimes is what each of some processes has used so far, in all of its threads.
func processorTimes(pids []int) ([]time.Duration, error) {
	times := make([]time.Duration, len(pids))
	for i, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			used, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			if err != nil {
				return nil, err
			}
			times[i] += time.Duration(used)
		}
	}
	return times, nil
}
