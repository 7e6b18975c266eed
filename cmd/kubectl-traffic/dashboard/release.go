// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// rereadEvery is how often pods, events and rights are read while the Rollout itself does not change.
const rereadEvery = 10 * time.Second

// release sends a Rollout with all that its page shows, whenever something of that changes.
func (s *server) release(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	one := followOne[*v1alpha1.Rollout](ctx, s, v, rollouts, keyIn(r))
	out := newStream(w)
	var shown, recorded news
	var kept recordings
	s.pump(ctx, out, one.wake, func() error {
		update := s.updateOf(ctx, v, one, &kept)
		if update == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the viewer has left
		}
		err := shown.send(out, "release", update)
		if kept.known {
			err = errors.Join(err, recorded.send(out, "recording", kept.made))
		}
		return err
	})
}

// followOne watches one object until the context is done, and wakes for what belongs to it too.
func followOne[T oneObject](ctx context.Context, s *server, v *Viewer, k kind, key types.NamespacedName) *oneStore[T] {
	one := &oneStore[T]{mailbox: newMailbox()}
	source := &watcher{kind: k, api: v.API, namespace: key.Namespace, name: key.Name, report: one.report}
	go source.follow(ctx, one)
	go s.remind(ctx, &one.mailbox)
	return one
}

// news is what a browser was sent last.
type news []byte

// send sends a value unless it is what was sent before.
func (n *news) send(out *stream, event string, value any) error {
	text, err := json.Marshal(value)
	if err != nil || bytes.Equal(text, *n) {
		return err
	}
	*n = text
	return out.send(event, json.RawMessage(text))
}

// remind wakes from time to time.
func (s *server) remind(ctx context.Context, m *mailbox) {
	ticker := s.Clock.NewTicker(rereadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			m.change(func() {})
		}
	}
}

// releaseUpdate is what the page of a release shows.
type releaseUpdate struct {
	Release *view.Release `json:"release,omitempty"`
	// Gone is whether there is no such Rollout.
	Gone    bool     `json:"gone,omitempty"`
	Trouble *trouble `json:"trouble,omitempty"`
}

// updateOf is nil while nothing is known.
func (s *server) updateOf(ctx context.Context, v *Viewer, one *oneStore[*v1alpha1.Rollout], kept *recordings) *releaseUpdate {
	ro, wrong, some := one.known()
	switch {
	case ro != nil:
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		release := view.MakeRelease(s.gather(ctx, v, ro, kept))
		return &releaseUpdate{Release: &release, Trouble: wrong}
	case some:
		return &releaseUpdate{Gone: wrong == nil, Trouble: wrong}
	}
	return nil
}

// gather reads what belongs to a Rollout. What can't be read is named.
func (s *server) gather(ctx context.Context, v *Viewer, ro *v1alpha1.Rollout, kept *recordings) view.Sources {
	sources := view.Sources{Snapshot: rolloutview.Snapshot{Rollout: ro}, Now: s.Clock.Now()}
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"The pods", func() (err error) { sources.Snapshot, err = rolloutapi.Versions(ctx, v.API, ro); return err }},
		{"The events", func() (err error) { sources.Events, err = rolloutapi.Events(ctx, v.API, ro); return err }},
		{"The Freezes", func() (err error) { sources.Freezes, err = rolloutapi.Freezes(ctx, v.API, ro.Namespace); return err }},
		{"The recordings", func() error { return kept.read(ctx, v.API, ro) }},
		{"Your rights", func() (err error) { sources.Rights, err = v.rights(ctx, ro); return err }},
	} {
		if err := part.read(); err != nil {
			sources.Missing = append(sources.Missing, fmt.Sprintf("%s can't be read: %v.", part.name, cli.Explained(err)))
		}
	}
	sources.Rights.ReadOnly = s.ReadOnly
	return sources
}

// keyIn is the object that a path names.
func keyIn(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
