// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/observe"
)

const (
	// DefaultWindow is two scrapes of a Prometheus with the usual 15 seconds.
	DefaultWindow = 30 * time.Second
	// DefaultTimeout is how long an observation may take.
	DefaultTimeout = 10 * time.Second

	// arrival is how long after their time samples may reach the store.
	arrival = 2 * time.Second
)

// Options configure a Source.
type Options struct {
	// API of the server; NewAPI makes one.
	API promv1.API
	// Profile of the data plane.
	Profile Profile
	// Services reports whether there is a Service; for labels that join several names.
	Services Services
	Clock    clock.PassiveClock
	// Window is the length of a window; DefaultWindow when zero.
	Window time.Duration
	// ScrapeInterval is the one of the server, if it is known. A window has to be twice
	// as long for each to have samples.
	ScrapeInterval time.Duration
	// Timeout of an observation; DefaultTimeout when zero.
	Timeout time.Duration
}

// Source observes traffic by queries. It is safe for concurrent use.
type Source struct{ options Options }

var _ observe.Source = (*Source)(nil)

// New makes a Source. The error names the field and the fix.
func New(o Options) (*Source, error) {
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.Window < time.Second || o.Window%time.Second != 0 {
		return nil, fmt.Errorf("window: %s; give whole seconds", o.Window)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if err := o.Profile.validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return &Source{options: o}, nil
}

// Observe asks all queries at once. It is an error if one of them has no answer.
func (s *Source) Observe(ctx context.Context, namespace string) (observe.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	end := s.options.Clock.Now().Add(-arrival).Truncate(s.options.Window)
	queries, err := s.options.Profile.queries(namespace, s.options.Window)
	if err != nil {
		return observe.Snapshot{}, err
	}
	answers := make([]model.Vector, len(queries))
	warned := make([]bool, len(queries))
	asking, ctx := errgroup.WithContext(ctx)
	for i, q := range queries {
		asking.Go(func() (err error) {
			answers[i], warned[i], err = s.ask(ctx, q.text, end)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return observe.Snapshot{}, err
	}
	t := newFlowCounts(s.options.Services)
	for i, q := range queries {
		t.add(q, answers[i])
	}
	return observe.Snapshot{Start: end.Add(-s.options.Window), End: end, Flows: t.list(namespace), Partial: s.partial(warned)}, nil
}

// ask asks one query. Series that had no sample in the window are not known any more.
func (s *Source) ask(ctx context.Context, text string, at time.Time) (answer model.Vector, warned bool, err error) {
	value, warnings, _, err := s.options.API.Query(ctx, text, at, promv1.WithLookbackDelta(s.options.Window))
	if err != nil {
		return nil, false, unavailable(ctx, err)
	}
	answer, ok := value.(model.Vector)
	if !ok {
		return nil, false, &observe.UnavailableError{Message: "the metrics store does not answer as a Prometheus does", Cause: fmt.Errorf("a %s to %q", value.Type(), text)}
	}
	return answer, len(warnings) > 0, nil
}

// partial says what may be missing.
func (s *Source) partial(warned []bool) string {
	for _, w := range warned {
		if w {
			return "the metrics store says that its answer may be incomplete"
		}
	}
	if 2*s.options.ScrapeInterval > s.options.Window {
		return fmt.Sprintf("the window of %s is shorter than two scrapes, %s: requests may be missing", s.options.Window, 2*s.options.ScrapeInterval)
	}
	return ""
}

// unavailable leaves out what the server said.
func unavailable(ctx context.Context, err error) error {
	message := "the metrics store could not be reached"
	var answered *promv1.Error
	switch {
	case errors.Is(err, errTooLong):
		message = errTooLong.Error()
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		message = "the metrics store did not answer in time"
	case errors.As(err, &answered):
		message = answers[answered.Type]
		if message == "" {
			message = "the metrics store does not answer as a Prometheus does"
		}
	}
	return &observe.UnavailableError{Message: message, Cause: err}
}

// answers are errors of the store in words of Serin's own.
var answers = map[promv1.ErrorType]string{
	promv1.ErrBadData:  "the metrics store does not accept the query",
	promv1.ErrExec:     "the metrics store can't answer the query",
	promv1.ErrTimeout:  "the metrics store gave up: the query takes too long",
	promv1.ErrCanceled: "the metrics store gave up",
	promv1.ErrServer:   "the metrics store reports an error of its own",
	promv1.ErrClient:   "the metrics store does not accept the request; check its address and the credentials",
}
