// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// debounce is the shortest time between two events: a browser draws what changes in it at once.
const debounce = 100 * time.Millisecond

// fleet sends all Rollouts that the viewer may see, and then what changes of them.
func (s *server) fleet(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.listed(w, r, v, rollouts, rowOf(view.MakeRow))
}

// listed sends a row of each object of a kind that the viewer may see, and then what changes
// of them.
func (s *server) listed(w http.ResponseWriter, r *http.Request, v *Viewer, k kind, makeRow makeRow) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	where := scopeOf(ctx, v, k, r.URL.Query().Get("namespace"))
	out := newStream(w)
	if out.send("scope", where) != nil {
		return
	}
	rows := newRowStore(makeRow)
	source := &watcher{kind: k, api: v.API, namespace: where.Namespace, report: rows.report}
	go source.follow(ctx, rows)
	s.pump(ctx, out, rows.wake, func() error { return rows.send(out) })
}

// scope is where objects are listed.
type scope struct {
	// Namespace is "" for the whole cluster.
	Namespace string `json:"namespace"`
	// Narrowed says why that is not the whole cluster, if the viewer has not asked for a namespace.
	Narrowed string `json:"narrowed,omitempty"`
}

// scopeOf is the namespace that was asked for, or the whole cluster, or the namespace of the
// viewer where the cluster does not let them list all.
func scopeOf(ctx context.Context, v *Viewer, k kind, asked string) scope {
	if asked != "" {
		return scope{Namespace: asked}
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := v.API.List(ctx, k.empty(), client.Limit(1)); apierrors.IsForbidden(err) {
		return scope{v.Namespace, fmt.Sprintf("You may not list the %s of all namespaces. The page shows those of the namespace %s.", k.plural, v.Namespace)}
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
