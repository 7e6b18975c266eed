// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
)

// canaries sends all CanaryReleases that the viewer may see, and then what changes of them.
func (s *server) canaries(w http.ResponseWriter, r *http.Request, v *Viewer) {
	s.listed(w, r, v, canaryReleases, rowOf(view.MakeCanaryRow))
}

// canaryUpdate is what the page of a CanaryRelease shows.
type canaryUpdate struct {
	Canary *view.Canary `json:"canary,omitempty"`
	// Gone is whether there is no such CanaryRelease.
	Gone    bool     `json:"gone,omitempty"`
	Trouble *trouble `json:"trouble,omitempty"`
}

// canary sends a CanaryRelease with all that its page shows, whenever something of that changes.
func (s *server) canary(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	one := followOne[*v1alpha1.CanaryRelease](ctx, s, v, canaryReleases, keyIn(r))
	out := newStream(w)
	var shown news
	s.pump(ctx, out, one.wake, func() error {
		cr, wrong, some := one.known()
		if !some {
			return nil
		}
		update := canaryUpdate{Gone: cr == nil && wrong == nil, Trouble: wrong}
		if cr != nil {
			update.Canary = s.gatherCanary(ctx, v, cr)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the viewer has left
		}
		return shown.send(out, "canary", update)
	})
}

// gatherCanary reads what belongs to a CanaryRelease. What the viewer may not read is left out
// and named.
func (s *server) gatherCanary(ctx context.Context, v *Viewer, cr *v1alpha1.CanaryRelease) *view.Canary {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sources := view.CanarySources{Canary: cr}
	var err error
	if sources.Events, err = rolloutapi.EventsOf(ctx, v.API, "CanaryRelease", cr); err != nil {
		sources.Missing = append(sources.Missing, fmt.Sprintf("The events can't be read: %v.", cli.Explained(err)))
	}
	if sources.Rights, err = v.canaryRights(ctx, cr); err != nil {
		sources.Missing = append(sources.Missing, fmt.Sprintf("Your rights can't be read: %v.", cli.Explained(err)))
	}
	sources.Rights.ReadOnly = s.ReadOnly
	canary := view.MakeCanary(sources)
	return &canary
}

// endCanary adopts or deprecates a CanaryRelease as the viewer.
func (s *server) endCanary(w http.ResponseWriter, r *http.Request, v *Viewer) {
	cr := &v1alpha1.CanaryRelease{}
	s.acted(w, r, v, cr, func(ctx context.Context, api rolloutapi.Writer, wanted request) (string, error) {
		transition := v1alpha1.CanaryTransition(wanted.Action)
		switch {
		case transition != v1alpha1.CanaryTransitionAdopted && transition != v1alpha1.CanaryTransitionDeprecated:
			return "", fmt.Errorf("there is no action %q", wanted.Action)
		case view.CanaryRevision(cr) != wanted.Revision:
			return "", fmt.Errorf("the CanaryRelease %s was changed since the page asked; look at it again before you decide", cr.Name)
		}
		asked, err := api.Transit(ctx, cr, transition)
		if err != nil || asked {
			return fmt.Sprintf("Requested: %s.", transition), err
		}
		return "Nothing had to change.", nil
	})
}
