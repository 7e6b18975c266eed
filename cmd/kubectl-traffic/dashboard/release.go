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
	one := &rolloutStore{mailbox: newMailbox()}
	source := &rollouts{api: v.API, namespace: r.PathValue("namespace"), name: r.PathValue("name"), report: one.report}
	go source.follow(ctx, one)
	go s.remind(ctx, &one.mailbox)
	out := newStream(w)
	var shown, recorded news
	s.pump(ctx, out, one.wake, func() error {
		update, recording := s.updateOf(ctx, v, one)
		if update == nil || ctx.Err() != nil {
			return nil
		}
		return errors.Join(shown.send(out, "release", update), recorded.send(out, "recording", recording))
	})
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
func (s *server) updateOf(ctx context.Context, v *Viewer, one *rolloutStore) (*releaseUpdate, *view.Recording) {
	one.mu.Lock()
	ro, listed, wrong := one.rollout, one.listed, one.trouble
	one.mu.Unlock()
	switch {
	case ro != nil:
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		sources, recording := s.gather(ctx, v, ro)
		release := view.MakeRelease(sources)
		return &releaseUpdate{Release: &release, Trouble: wrong}, recording
	case listed || wrong != nil:
		return &releaseUpdate{Gone: listed && wrong == nil, Trouble: wrong}, nil
	}
	return nil, nil
}

// gather reads what belongs to a Rollout. What the viewer may not read is left out and named.
func (s *server) gather(ctx context.Context, v *Viewer, ro *v1alpha1.Rollout) (sources view.Sources, recording *view.Recording) {
	sources = view.Sources{Snapshot: rolloutview.Snapshot{Rollout: ro}, Now: s.Clock.Now()}
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"The pods", func() (err error) { sources.Snapshot, err = rolloutapi.Versions(ctx, v.API, ro); return err }},
		{"The events", func() (err error) { sources.Events, err = rolloutapi.Events(ctx, v.API, ro); return err }},
		{"The Freezes", func() (err error) { sources.Freezes, err = rolloutapi.Freezes(ctx, v.API, ro.Namespace); return err }},
		{"The recordings", func() (err error) { recording, err = recordingOf(ctx, v.API, ro); return err }},
		{"Your rights", func() (err error) { sources.Rights, err = v.rights(ctx, ro); return err }},
	} {
		if err := part.read(); err != nil {
			sources.Missing = append(sources.Missing, fmt.Sprintf("%s are left out: %v.", part.name, cli.Explained(err)))
		}
	}
	sources.Rights.ReadOnly = s.ReadOnly
	return sources, recording
}

// rolloutStore keeps one Rollout.
type rolloutStore struct {
	mailbox
	rollout *v1alpha1.Rollout
	listed  bool
	trouble *trouble
}

func (s *rolloutStore) report(t *trouble) {
	s.change(func() { s.trouble = t })
}

func (s *rolloutStore) Add(object any) error { return s.Update(object) }

func (s *rolloutStore) Update(object any) error {
	ro, err := rolloutOf(object)
	if err == nil {
		s.change(func() { s.rollout = ro })
	}
	return err
}

func (s *rolloutStore) Delete(any) error {
	s.change(func() { s.rollout = nil })
	return nil
}

// Replace takes a whole list, of one Rollout or of none.
func (s *rolloutStore) Replace(list []any, _ string) (err error) {
	var listed *v1alpha1.Rollout
	if len(list) > 0 {
		if listed, err = rolloutOf(list[0]); err != nil {
			return err
		}
	}
	s.change(func() { s.rollout, s.listed = listed, true })
	return nil
}

func (s *rolloutStore) Resync() error { return nil }

// keyIn is the Rollout that a path names.
func keyIn(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
