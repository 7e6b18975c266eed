// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
)

const (
	// usualPeriod is between two looks at what is stored and announced.
	usualPeriod = time.Minute
	// retry is the pause after something failed.
	retry = 2 * time.Second
	// settle is how long a new authority must have been announced before the certificate
	// that it signed is shown: the kube-apiserver takes note in its own time.
	settle = 10 * time.Second
)

// ErrConflict is returned by a Store when another replica has written meanwhile.
var ErrConflict = errors.New("the certificate was written by another replica")

// Store keeps the bundle of all replicas.
type Store interface {
	// Load returns the bundle, empty when there is none yet, and its version.
	Load(ctx context.Context) (Bundle, string, error)
	// Save replaces the bundle of a version, and fails with ErrConflict when it is
	// not the latest.
	Save(ctx context.Context, b Bundle, version string) error
}

// Announcer publishes to the kube-apiserver by which authorities the server is known.
type Announcer interface {
	Announce(ctx context.Context, authorities []byte) error
}

// Options of a Rotator.
type Options struct {
	// Name of the certificate in logs.
	Name string
	// Hosts are the DNS names that the kube-apiserver uses.
	Hosts     []string
	Store     Store
	Announcer Announcer
	// Period between two looks at what is stored and announced; a minute when zero.
	Period time.Duration
	// Wake has Run look at once. It may be nil.
	Wake  <-chan struct{}
	Clock clock.Clock
	Log   logr.Logger
}

// Rotator holds the certificate that this replica shows, and keeps it right.
type Rotator struct {
	options Options

	mu        sync.Mutex
	shown     Bundle
	next      Bundle    // announced, and to be shown later
	since     time.Time // when next was announced
	announced error     // why the latest announcement failed
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*Rotator)(nil)

// NewRotator makes a Rotator that shows no certificate before it has run.
func NewRotator(o Options) *Rotator {
	o.Period = cmp.Or(o.Period, usualPeriod)
	return &Rotator{options: o, announced: errors.New("the authority of the certificate has not been announced yet")}
}

// Name names the certificate in logs.
func (r *Rotator) Name() string { return r.options.Name }

// CurrentCertKeyContent returns the certificate to show and its key.
func (r *Rotator) CurrentCertKeyContent() (certificate, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.Certificate, r.shown.Key
}

// AddListener has a listener notified of a new certificate.
func (r *Rotator) AddListener(l dynamiccertificates.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, l)
}

// Ready says why clients could not trust what is shown; nil when they can.
func (r *Rotator) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.shown.Certificate) == 0:
		return errors.New("there is no serving certificate yet")
	case r.shown.Expired(r.options.Clock.Now()):
		return errors.New("the serving certificate has expired; the log says why it was not renewed")
	}
	return r.announced
}

// Run keeps the certificate right until ctx ends. It calls begin once, as soon as there
// is a certificate to show.
func (r *Rotator) Run(ctx context.Context, begin func()) {
	begun := false
	for ctx.Err() == nil {
		pause, err := r.Step(ctx)
		if err != nil && ctx.Err() == nil {
			r.options.Log.Error(err, "Could not check or renew the serving certificate; trying again")
		}
		if certificate, _ := r.CurrentCertKeyContent(); !begun && len(certificate) > 0 {
			begun = true
			begin()
		}
		timer := r.options.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C():
		case <-r.options.Wake:
			timer.Stop()
		}
	}
}

// Step looks once at what there is and does what is due. It returns when to look again.
func (r *Rotator) Step(ctx context.Context) (time.Duration, error) {
	b, err := r.load(ctx)
	if errors.Is(err, ErrConflict) {
		return 0, nil // another replica has just made one
	}
	if err != nil {
		return retry, err
	}
	announced := r.options.Announcer.Announce(ctx, b.Authorities)
	if announced != nil {
		announced = fmt.Errorf("announce the authority of the serving certificate: %w", announced)
	}
	pause := r.take(b, announced, r.options.Clock.Now())
	return pause, announced
}

// load returns the bundle of all replicas, made anew when that is due.
func (r *Rotator) load(ctx context.Context) (Bundle, error) {
	b, version, err := r.options.Store.Load(ctx)
	if err != nil {
		return b, fmt.Errorf("read the serving certificate: %w", err)
	}
	now := r.options.Clock.Now()
	reason := b.Due(r.options.Hosts, now)
	if reason == "" {
		return b, nil
	}
	previous := b
	if len(previous.Authorities) == 0 { // it was emptied: replicas still show what was there
		r.mu.Lock()
		previous = r.shown
		r.mu.Unlock()
	}
	if b, err = Make(r.options.Hosts, now, previous); err != nil {
		return b, err
	}
	if err := r.options.Store.Save(ctx, b, version); err != nil {
		return b, fmt.Errorf("write the serving certificate: %w", err)
	}
	r.options.Log.Info("Made a new serving certificate", "reason", reason)
	return b, nil
}

// take shows a bundle, at once when there is nothing else to show, else when its
// authority has been announced for a while. It returns when to look again.
func (r *Rotator) take(b Bundle, announced error, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announced = announced
	pause := r.options.Period
	if announced != nil {
		pause = retry
	}
	if r.shown.same(b) {
		r.shown, r.next = b, Bundle{}
		return pause
	}
	if len(r.shown.Certificate) > 0 && !r.shown.Expired(now) {
		if announced != nil {
			return retry
		}
		if !r.next.same(b) {
			r.next, r.since = b, now
			return settle
		}
		if waited := now.Sub(r.since); waited < settle {
			return settle - waited
		}
	}
	r.shown, r.next = b, Bundle{}
	for _, l := range r.listeners {
		l.Enqueue()
	}
	return pause
}
