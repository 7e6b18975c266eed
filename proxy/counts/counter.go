// SPDX-License-Identifier: Apache-2.0

package counts

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

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/proxy/replace"
)

// durationBounds are the upper bounds of the latency histogram, in seconds.
// nginx measures in milliseconds, so there is nothing to distinguish below one.
var durationBounds = []float64{
	0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
	0.1, 0.15, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60,
}

// Counter counts the requests in the access log. The counts and the position up to
// which they were read are one state: the process that loads it reads on from there, and
// counts every line once, however the process before it ended.
type Counter struct {
	// file that the state is saved in.
	file  string
	log   *accesslog.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	state state
	// now is when the lines were taken that are being counted.
	now time.Time
}

// state is what is saved.
type state struct {
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
	// Unrouted are the requests that no backend was asked for, by status.
	Unrouted map[string]uint64 `json:"unrouted"`
	// Refused are those of Unrouted that the proxy itself is the cause of.
	Refused uint64 `json:"refused"`
	// CopyDrops are copies that were not sent, by Service.
	CopyDrops map[string]uint64 `json:"copyDrops"`
	// Dropped are lines that could not be understood.
	Dropped uint64 `json:"dropped"`
	// Killed are workers of nginx that ended on their own.
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

// New makes a Counter that begins to count, and keeps its state in a file.
func New(file string, now clock.PassiveClock) *Counter {
	c := &Counter{file: file, clock: now, state: newState(now)}
	c.log = accesslog.NewReader(c.count, func() { c.state.Dropped++ })
	return c
}

func newState(now clock.PassiveClock) state {
	return state{
		Start: float64(now.Now().UnixNano()) / 1e9, Services: map[string]string{}, Kinds: map[string]map[string]*serviceCounts{},
		Unrouted: map[string]uint64{}, CopyDrops: map[string]uint64{},
	}
}

// Load continues what another process counted. Without a file there is nothing to
// continue; after an error counting begins anew.
func (c *Counter) Load() error {
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load the counts: %w", err)
	}
	loaded := newState(c.clock)
	if err := json.Unmarshal(data, &loaded); err != nil {
		return fmt.Errorf("load the counts: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = loaded
	return nil
}

// Position is up to where the log was counted.
func (c *Counter) Position() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Position
}

// Save writes the state down and returns its position in the log.
func (c *Counter) Save() (int64, error) {
	c.mu.Lock()
	data, err := json.Marshal(c.state)
	position := c.state.Position
	c.mu.Unlock()
	if err == nil {
		err = replace.File(c.file, data)
	}
	if err != nil {
		return 0, fmt.Errorf("save the counts: %w", err)
	}
	return position, nil
}

// Take counts the next bytes of the log.
func (c *Counter) Take(chunk []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.clock.Now()
	c.state.Flows.sweep(c.now)
	c.state.Position += c.log.Take(chunk)
}

// Finish ends the log.
func (c *Counter) Finish() error {
	c.mu.Lock()
	c.log.Finish()
	c.mu.Unlock()
	_, err := c.Save()
	return err
}

// Know remembers the names behind IDs before nginx can write the IDs, and that of the
// root Service, and saves them, so that they are known to the process that reads those lines.
func (c *Counter) Know(root types.NamespacedName, services map[string]string) error {
	c.mu.Lock()
	c.state.Root = root
	maps.Copy(c.state.Services, services)
	c.mu.Unlock()
	_, err := c.Save()
	return err
}

// Serve begins the counts of Services: one without requests has a count of 0, not none.
func (c *Counter) Serve(services map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, service := range services {
		c.counts(accesslog.KindSplit, service)
	}
}

// Killed counts workers that ended on their own.
func (c *Counter) Killed(workers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Killed += uint64(max(workers, 0))
}

// count adds a line of the access log that is there n times.
func (c *Counter) count(line accesslog.Entry) {
	r, n := line.Record, line.N
	if !line.Valid {
		c.state.Dropped += n
		return
	}
	if r.Backend == "" {
		c.state.Unrouted[r.Code] += n
		if r.Kind == accesslog.KindRefused {
			c.state.Refused += n
		}
		return
	}
	service, known := c.state.Services[r.Backend]
	switch {
	case !known:
		c.state.Dropped += n
	case r.Kind == accesslog.KindDropped:
		c.state.CopyDrops[service] += n
	case r.Kind == accesslog.KindSticky: // as much shared by the weights as the others
		c.counts(accesslog.KindSticky, service).add(r, n)
		c.counts(accesslog.KindSplit, service).add(r, n)
	default:
		c.counts(r.Kind, service).add(r, n)
	}
	if known {
		c.state.Flows.add(service, r, n, c.now)
	}
}

// counts finds the counts of a kind and a Service.
func (c *Counter) counts(kind, service string) *serviceCounts {
	if c.state.Kinds[kind] == nil { // not known to the version that saved the counts
		c.state.Kinds[kind] = map[string]*serviceCounts{}
	}
	of := c.state.Kinds[kind][service]
	if of == nil {
		of = &serviceCounts{Requests: map[string]uint64{}, Buckets: make([]uint64, len(durationBounds)+1)}
		c.state.Kinds[kind][service] = of
	}
	return of
}

func (c *serviceCounts) add(r accesslog.Record, n uint64) {
	c.Requests[r.Code] += n
	if !r.Complete {
		c.Incomplete += n
	}
	if r.Seconds < 0 {
		return
	}
	i, _ := slices.BinarySearch(durationBounds, r.Seconds)
	c.Buckets[i] += n
	c.Millis += n * millis(r.Seconds)
}

// millis rounds seconds that nginx wrote with three decimals.
func millis(seconds float64) uint64 { return uint64(seconds*1000 + 0.5) }
