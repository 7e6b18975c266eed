// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/traffic/nginx"
)

// durationBounds are the upper bounds of the latency histogram, in seconds.
// nginx measures in milliseconds, so there is nothing to tell apart below one.
var durationBounds = []float64{
	0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
	0.1, 0.15, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60,
}

// tally counts the requests in the access log. The counts and the position up to
// which they were read are one state: whoever loads it reads on from there, and
// counts every line once, however the process before it ended.
type tally struct {
	// file that the state is saved in.
	file string
	// lines cuts what is taken.
	lines *lines
	// repeats gathers the lines of what is taken.
	repeats repeats
	clock   clock.PassiveClock

	mu    sync.Mutex
	state tallyState
	// now is when the lines were taken that are being counted.
	now time.Time
}

// tallyState is what is saved.
type tallyState struct {
	// Position in the log up to which Services and the counts tell of it.
	Position int64 `json:"position"`
	// Start of counting, in seconds since 1970.
	Start float64 `json:"start"`
	// Services are the names behind the IDs of the log. None is ever forgotten,
	// because a line may come late.
	Services map[string]string `json:"services"`
	// Kinds are the counts by the kind of request, and in those by Service.
	Kinds map[string]map[string]*serviceCounts `json:"kinds"`
	// Root is the Service that clients call.
	Root types.NamespacedName `json:"root"`
	// Flows are the counts by who sent the requests.
	Flows flows `json:"flows"`
	// Unrouted are the requests that nobody was asked for, by status.
	Unrouted map[string]uint64 `json:"unrouted"`
	// CopyDrops are copies that were not sent, by Service.
	CopyDrops map[string]uint64 `json:"copyDrops"`
	// Dropped are lines that could not be understood.
	Dropped uint64 `json:"dropped"`
	// Killed are workers of nginx that ended without being told to.
	Killed uint64 `json:"killed"`
}

// serviceCounts are the counts of one kind of request to one Service.
type serviceCounts struct {
	Requests   map[string]uint64 `json:"requests"` // by status
	Incomplete uint64            `json:"incomplete"`
	// Buckets are requests by duration: those up to each of durationBounds that are
	// above the one before, and at the end the rest.
	Buckets []uint64 `json:"buckets"`
	// Millis is the sum of all durations.
	Millis uint64 `json:"millis"`
}

// newTally makes a tally that begins to count.
func newTally(file string, c clock.PassiveClock) *tally {
	t := &tally{file: file, clock: c, state: tallyState{
		Start: float64(c.Now().UnixNano()) / 1e9, Services: map[string]string{}, Kinds: map[string]map[string]*serviceCounts{},
		Unrouted: map[string]uint64{}, CopyDrops: map[string]uint64{},
	}}
	t.repeats = repeats{of: map[string]*repeat{}, count: t.count}
	t.lines = &lines{line: t.repeats.add, dropped: func() { t.state.Dropped++ }}
	return t
}

// load continues what another process counted. Without a file there is nothing to
// continue.
func (t *tally) load() error {
	data, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load the counts: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := json.Unmarshal(data, &t.state); err != nil {
		return fmt.Errorf("load the counts: %w", err)
	}
	return nil
}

// position is up to where the log was counted.
func (t *tally) position() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Position
}

// save writes the state down and returns its position in the log.
func (t *tally) save() (int64, error) {
	t.mu.Lock()
	data, err := json.Marshal(t.state)
	position := t.state.Position
	t.mu.Unlock()
	if err == nil {
		err = replaceFile(t.file, data)
	}
	if err != nil {
		return 0, fmt.Errorf("save the counts: %w", err)
	}
	return position, nil
}

// take counts the next bytes of the log.
func (t *tally) take(chunk []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = t.clock.Now()
	t.state.Flows.sweep(t.now)
	before := t.lines.pending()
	t.lines.add(chunk)
	t.repeats.settle()
	t.state.Position += int64(len(chunk) + before - t.lines.pending())
}

// finish ends the log.
func (t *tally) finish() error {
	t.mu.Lock()
	t.lines.finish()
	t.mu.Unlock()
	_, err := t.save()
	return err
}

// know remembers the names behind IDs before nginx can write the IDs, and that of the
// root Service, and saves them, so that they are known to whoever reads those lines.
func (t *tally) know(root types.NamespacedName, services map[string]string) error {
	t.mu.Lock()
	t.state.Root = root
	maps.Copy(t.state.Services, services)
	t.mu.Unlock()
	_, err := t.save()
	return err
}

// serve begins the counts of Services: one without requests has a count of 0, not none.
func (t *tally) serve(services map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, service := range services {
		t.counts(nginx.KindSplit, service)
	}
}

// killed counts workers that ended without being told to.
func (t *tally) killed(workers int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Killed += uint64(max(workers, 0))
}

// count adds a line of the access log that is there n times.
func (t *tally) count(line repeat) {
	r, n := line.record, line.n
	if !line.valid {
		t.state.Dropped += n
		return
	}
	if r.backend == "" {
		t.state.Unrouted[r.code] += n
		return
	}
	service, known := t.state.Services[r.backend]
	switch {
	case !known:
		t.state.Dropped += n
	case r.kind == nginx.KindDropped:
		t.state.CopyDrops[service] += n
	case r.kind == nginx.KindSticky: // as much shared by the weights as the others
		t.counts(nginx.KindSticky, service).add(r, n)
		t.counts(nginx.KindSplit, service).add(r, n)
	default:
		t.counts(r.kind, service).add(r, n)
	}
	if known {
		t.state.Flows.add(service, r, n, t.now)
	}
}

// counts finds the counts of a kind and a Service.
func (t *tally) counts(kind, service string) *serviceCounts {
	if t.state.Kinds[kind] == nil { // not known to the version that saved the counts
		t.state.Kinds[kind] = map[string]*serviceCounts{}
	}
	c := t.state.Kinds[kind][service]
	if c == nil {
		c = &serviceCounts{Requests: map[string]uint64{}, Buckets: make([]uint64, len(durationBounds)+1)}
		t.state.Kinds[kind][service] = c
	}
	return c
}

func (c *serviceCounts) add(r record, n uint64) {
	c.Requests[r.code] += n
	if !r.complete {
		c.Incomplete += n
	}
	if r.seconds < 0 {
		return
	}
	i, _ := slices.BinarySearch(durationBounds, r.seconds)
	c.Buckets[i] += n
	c.Millis += n * millis(r.seconds)
}

// millis rounds seconds that nginx wrote with three decimals.
func millis(seconds float64) uint64 { return uint64(seconds*1000 + 0.5) }

// replaceFile writes a file so that a reader finds the former content or this one.
func replaceFile(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
