// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// calendar is what the page of the calendar shows.
type calendar struct {
	scope
	view.Calendar
}

// showCalendar says when the Rollouts that the viewer may list go on in the next days.
func (s *server) showCalendar(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	where := scopeOf(ctx, v, rollouts, r.URL.Query().Get("namespace"))
	var list v1alpha1.RolloutList
	if err := v.API.List(ctx, &list, client.InNamespace(where.Namespace)); err != nil {
		wrong := rollouts.troubleOf(err)
		fail(w, http.StatusBadGateway, wrong.Message)
		return
	}
	sources := view.CalendarSources{Rollouts: list.Items, Now: s.Clock.Now()}
	missing := v.readFreezes(ctx, &sources)
	c := view.MakeCalendar(sources)
	c.Missing = missing
	reply(w, http.StatusOK, calendar{where, c})
}

// readFreezes reads the Freezes and, where there are any, which namespaces they concern.
// What the viewer may not read is left out and named.
func (v *Viewer) readFreezes(ctx context.Context, s *view.CalendarSources) (missing []string) {
	var freezes v1alpha1.FreezeList
	if err := v.API.List(ctx, &freezes); err != nil {
		return []string{fmt.Sprintf("The Freezes are left out: %v.", cli.Explained(err))}
	}
	if len(freezes.Items) == 0 {
		return nil
	}
	s.Freezes, s.Labels = freezes.Items, map[string]map[string]string{}
	for i := range s.Rollouts {
		name := s.Rollouts[i].Namespace
		if _, known := s.Labels[name]; known {
			continue
		}
		var n corev1.Namespace
		if err := v.API.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
			missing = append(missing, fmt.Sprintf("Which Freezes concern the namespace %s is not known: %v.", name, cli.Explained(err)))
		}
		s.Labels[name] = n.Labels
	}
	return missing
}
