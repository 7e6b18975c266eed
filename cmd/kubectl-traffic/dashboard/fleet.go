// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// debounce is the shortest time between two events: a browser draws what changes in it at once.
const debounce = 100 * time.Millisecond

// fleet sends all Rollouts that the viewer may see, and then what changes of them.
func (s *server) fleet(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	where := scopeOf(ctx, v, r.URL.Query().Get("namespace"))
	out := newStream(w)
	if out.send("scope", where) != nil {
		return
	}
	rows := newRowStore()
	source := &rollouts{api: v.API, namespace: where.Namespace, report: rows.report}
	go source.follow(ctx, rows)
	s.pump(ctx, out, rows.wake, func() error {
		update, some := rows.take()
		if !some {
			return nil
		}
		return out.send("rows", update)
	})
}

// scope is where Rollouts are listed.
type scope struct {
	// Namespace is "" for the whole cluster.
	Namespace string `json:"namespace"`
	// Narrowed says why that is not the whole cluster, if the viewer has not asked for a namespace.
	Narrowed string `json:"narrowed,omitempty"`
}

// scopeOf is the namespace that was asked for, or the whole cluster, or the namespace of the
// viewer where the cluster does not let them list all.
func scopeOf(ctx context.Context, v *Viewer, asked string) scope {
	if asked != "" {
		return scope{Namespace: asked}
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := v.API.List(ctx, &v1alpha1.RolloutList{}, client.Limit(1)); apierrors.IsForbidden(err) {
		return scope{v.Namespace, fmt.Sprintf("You may not list the Rollouts of the whole cluster. These are those of the namespace %s.", v.Namespace)}
	}
	return scope{}
}

// pump sends whenever something is new, until the browser leaves.
func (s *server) pump(ctx context.Context, out *stream, wake <-chan struct{}, send func() error) {
	beats := s.Clock.NewTicker(beat)
	defer beats.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-beats.C():
			err = out.alive()
		case <-wake:
			if err = send(); err == nil {
				select {
				case <-ctx.Done():
				case <-s.Clock.After(debounce):
				}
			}
		}
		if err != nil {
			return // the browser has left
		}
	}
}

// rowUpdate is what has changed since the last one.
type rowUpdate struct {
	Rows []json.RawMessage `json:"rows"`
	// Gone are the keys of rows that are no more.
	Gone []string `json:"gone"`
	// Complete is whether all Rollouts have been sent by now.
	Complete bool     `json:"complete"`
	Trouble  *trouble `json:"trouble,omitempty"`
}

// rowStore keeps the rows that the browser has, and which of them have changed.
type rowStore struct {
	mailbox
	rows     map[string]json.RawMessage
	pending  map[string]bool
	complete bool
	trouble  *trouble
	said     bool // whether the present trouble was sent
}

func newRowStore() *rowStore {
	return &rowStore{mailbox: newMailbox(), rows: map[string]json.RawMessage{}, pending: map[string]bool{}, said: true}
}

func (s *rowStore) report(t *trouble) {
	s.mu.Lock()
	same := t == nil && s.trouble == nil || t != nil && s.trouble != nil && *t == *s.trouble
	s.mu.Unlock()
	if !same {
		s.change(func() { s.trouble, s.said = t, false })
	}
}

// take returns what has changed, and whether anything has.
func (s *rowStore) take() (rowUpdate, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := rowUpdate{Rows: []json.RawMessage{}, Gone: []string{}, Complete: s.complete, Trouble: s.trouble}
	for key := range s.pending {
		if row, known := s.rows[key]; known {
			u.Rows = append(u.Rows, row)
		} else {
			u.Gone = append(u.Gone, key)
		}
	}
	some := len(s.pending) > 0 || !s.said
	clear(s.pending)
	s.said = true
	return u, some
}

func (s *rowStore) Add(object any) error { return s.Update(object) }

func (s *rowStore) Update(object any) error {
	ro, row, err := rowOf(object)
	if err == nil {
		s.change(func() { s.put(keyOf(ro), row) })
	}
	return err
}

func (s *rowStore) Delete(object any) error {
	ro, err := rolloutOf(object)
	if err == nil {
		s.change(func() { s.drop(keyOf(ro)) })
	}
	return err
}

// Replace takes a whole list, after which rows that are not in it are gone.
func (s *rowStore) Replace(list []any, _ string) error {
	fresh := make(map[string]json.RawMessage, len(list))
	for _, object := range list {
		ro, row, err := rowOf(object)
		if err != nil {
			return err
		}
		fresh[keyOf(ro)] = row
	}
	s.change(func() {
		for key := range s.rows {
			if _, there := fresh[key]; !there {
				s.drop(key)
			}
		}
		for key, row := range fresh {
			s.put(key, row)
		}
		s.said = s.said && s.complete // an empty fleet is news too
		s.complete = true
	})
	return nil
}

func (s *rowStore) Resync() error { return nil }

func (s *rowStore) put(key string, row json.RawMessage) {
	if !bytes.Equal(s.rows[key], row) {
		s.rows[key], s.pending[key] = row, true
	}
}

func (s *rowStore) drop(key string) {
	delete(s.rows, key)
	s.pending[key] = true
}

func keyOf(ro *v1alpha1.Rollout) string { return ro.Namespace + "/" + ro.Name }

func rowOf(object any) (*v1alpha1.Rollout, json.RawMessage, error) {
	ro, err := rolloutOf(object)
	if err != nil {
		return nil, nil, err
	}
	row, err := json.Marshal(view.MakeRow(ro))
	return ro, row, err
}
