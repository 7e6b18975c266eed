// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/poll"
	"github.com/serin-dev/serin/poll/fair"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/skew"
	"github.com/serin-dev/serin/traffic"
)

const (
	// soon is how often a proxy is read that does not serve yet what it is to serve.
	// Proxies need about a second to follow.
	soon = 200 * time.Millisecond
	// later is how often one is read that can't be, after some attempts.
	later = 2 * time.Second
	// seldom is how often one is read that serves it.
	seldom = 10 * time.Second
	// attempts fail before a proxy is read less often.
	attempts = 10
	// Timeout bounds one reading.
	Timeout = time.Second
)

// Source asks a pod at an address what it serves.
type Source interface {
	Read(ctx context.Context, address string, pod types.UID) (confirmation.Served, error)
}

// Options configure Reports. What is zero gets the default.
type Options struct {
	Source Source
	Clock  clock.WithTicker
	// Version of the operator. A proxy that it does not go with confirms nothing.
	Version string
	// Slots bound how many proxies are read at once. Default: 64.
	Slots *fair.Slots
}

// Reports knows what the proxies of TrafficSplits serve.
type Reports struct {
	Options
	begun  time.Time
	poller *poll.Poller[types.UID]
	// news are the splits of whose proxies something else was read. None is lost.
	news    workqueue.TypedInterface[types.NamespacedName]
	changed chan event.TypedGenericEvent[types.NamespacedName]

	mu     sync.Mutex
	splits map[types.NamespacedName]*split
}

// split is what the proxies of one TrafficSplit are to serve, and what they do.
type split struct {
	want traffic.Want
	pods map[types.UID]*pod
}

// pod is what was read of a proxy since what it is to serve is what it is.
type pod struct {
	address string
	reading traffic.Reading
	failed  int
	pace    time.Duration
}

// New makes Reports. They read once they are started.
func New(o Options) *Reports {
	if o.Slots == nil {
		o.Slots = fair.NewSlots(fair.Limits{Slots: 64})
	}
	return &Reports{
		Options: o, begun: o.Clock.Now(), poller: poll.New[types.UID](o.Clock, o.Slots),
		news: workqueue.NewTyped[types.NamespacedName](), changed: make(chan event.TypedGenericEvent[types.NamespacedName]),
		splits: map[types.NamespacedName]*split{},
	}
}

// Start reads until ctx ends.
func (r *Reports) Start(ctx context.Context) error {
	context.AfterFunc(ctx, r.news.ShutDown)
	var telling sync.WaitGroup
	telling.Go(func() {
		for r.tell(ctx) {
		}
	})
	defer telling.Wait()
	return r.poller.Run(ctx)
}

// Changed are splits of whose proxies something else was read.
func (r *Reports) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] { return r.changed }

// tell passes one of the news on; false when there will be none any more.
func (r *Reports) tell(ctx context.Context) bool {
	of, over := r.news.Get()
	if over {
		return false
	}
	defer r.news.Done(of)
	select {
	case r.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: of}:
		return true
	case <-ctx.Done():
		return false
	}
}

// NeedLeaderElection is true: only the leader acts upon what is read.
func (r *Reports) NeedLeaderElection() bool { return true }

// Read implements traffic.ProxyReports. It never waits.
func (r *Reports) Read(of types.NamespacedName, want traffic.Want, pods map[types.UID]string) map[types.UID]traffic.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.splits[of]
	if s == nil || s.want != want {
		s = &split{want: want, pods: map[types.UID]*pod{}} // what is under way is stored in the one before
		r.drop(of)
		r.splits[of] = s
	}
	for uid, p := range s.pods {
		if pods[uid] != p.address {
			delete(s.pods, uid)
			r.poller.Remove(uid)
		}
	}
	out := make(map[types.UID]traffic.Reading, len(pods))
	for uid, address := range pods {
		if s.pods[uid] == nil {
			s.pods[uid] = &pod{address: address}
			r.schedule(of, s, uid, soon)
			r.poller.Now(uid)
		}
		out[uid] = s.pods[uid].reading
	}
	if len(pods) == 0 {
		delete(r.splits, of)
	}
	return out
}

func (r *Reports) drop(of types.NamespacedName) {
	if s := r.splits[of]; s != nil {
		for uid := range s.pods {
			r.poller.Remove(uid)
		}
	}
}

// schedule has a pod read from now on at a pace.
func (r *Reports) schedule(of types.NamespacedName, s *split, uid types.UID, pace time.Duration) {
	p := s.pods[uid]
	if p.pace == pace {
		return
	}
	p.pace = pace
	r.poller.Set(uid, poll.Task{
		Namespace: of.Namespace, From: r.begun, Every: pace, Do: func(ctx context.Context) { r.read(ctx, of, s, uid, p) },
	})
}

func (r *Reports) read(ctx context.Context, of types.NamespacedName, s *split, uid types.UID, p *pod) {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	served, err := r.Source.Read(limited, p.address, uid)
	cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || r.splits[of] != s || s.pods[uid] != p {
		return // it began before what is to be served, or the pod, was another
	}
	before := p.reading
	pace := p.note(s.want, served, err, r.refusal(served))
	r.schedule(of, s, uid, pace)
	if p.reading != before {
		r.news.Add(of)
	}
}

// note keeps what was read, and returns when to read again. What a pod said that it serves
// stays true while it can't be read: it serves nothing older. What one says that the operator
// does not go with may mean something else.
func (p *pod) note(want traffic.Want, served confirmation.Served, err error, refusal string) time.Duration {
	if refusal != "" {
		p.reading = traffic.Reading{Done: true, Failed: true, Message: refusal}
		return later
	}
	if err != nil {
		p.failed++
		if !p.serves(want) {
			p.reading = traffic.Reading{Done: true, Failed: true, Message: fmt.Sprintf("what it serves can't be read at %s: %v", p.address, err)}
		}
		if p.failed > attempts {
			return later
		}
		return soon
	}
	p.failed = 0
	p.reading = traffic.Reading{
		Done: true, Message: served.Message, Serves: traffic.Want{Generation: served.Generation, Configuration: served.Configuration},
		Busy: steps(p.reading.Busy, served.Busy),
	}
	if p.serves(want) {
		return seldom
	}
	return soon
}

// refusal is why a proxy does not go with the operator, and what to do; "" when it does.
func (r *Reports) refusal(served confirmation.Served) string {
	why := skew.Refusal(skew.Part{Name: "the proxy", Version: served.Version}, skew.Part{Name: "the operator", Version: r.Version})
	if why == "" {
		return ""
	}
	return why + ": give proxy.image of the chart the version of image, or leave its tag and digest empty"
}

const (
	// step is what the load of a proxy is rounded up to, in percent: each change has the
	// split looked at. A load has to sink some more than to the next step before that counts.
	step  = 25
	slack = 10
)

// steps is a load in steps.
func steps(before, load int32) int32 {
	up := (load + step - 1) / step * step
	if up < before && load > before-step-slack {
		return before
	}
	return up
}

func (p *pod) serves(want traffic.Want) bool {
	return p.reading.Done && p.reading.Serves == want
}
