// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// request is a button that was pressed and confirmed.
type request struct {
	Action string `json:"action"`
	// Revision and Step are those that the question named.
	Revision string `json:"revision"`
	Step     int32  `json:"step"`
	Reason   string `json:"reason"`
}

// mostBytes bound a request; a reason has at most 256 characters.
const mostBytes = 8192

// decisions are the actions that are written to spec.control.
var decisions = []v1alpha1.ControlAction{
	v1alpha1.ControlPromote, v1alpha1.ControlSkip, v1alpha1.ControlPromoteFull, v1alpha1.ControlAbort, v1alpha1.ControlRetry,
}

// done says what an action has done.
type done struct {
	Message string `json:"message"`
}

// act carries an action about a Rollout out as the viewer.
func (s *server) act(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ro := &v1alpha1.Rollout{}
	s.acted(w, r, v, ro, func(ctx context.Context, api rolloutapi.Writer, wanted request) (string, error) {
		return carryOut(ctx, api, ro, wanted)
	})
}

// acted carries an action about an object out, which it reads first.
func (s *server) acted(w http.ResponseWriter, r *http.Request, v *Viewer, o client.Object, carryOut func(context.Context, rolloutapi.Writer, request) (string, error)) {
	if s.ReadOnly {
		fail(w, http.StatusForbidden, "The dashboard was started with --read-only. To decide, start it without that flag, or use kubectl traffic.")
		return
	}
	var wanted request
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	in.DisallowUnknownFields()
	if err := in.Decode(&wanted); err != nil {
		fail(w, http.StatusBadRequest, "The request can't be read: "+err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	err := v.API.Get(ctx, keyIn(r), o)
	var did string
	if err == nil {
		err = s.skew(wanted)
	}
	if err == nil {
		did, err = carryOut(ctx, rolloutapi.Writer{API: v.API, DryRun: cli.DryNone}, wanted)
	}
	if err != nil {
		fail(w, statusOf(err), view.Sentence(cli.Explained(err).Error()))
		return
	}
	reply(w, http.StatusOK, done{did})
}

// skew refuses a decision of a program that may not know what the operator makes of it, as the
// command line does. An abort never waits for another program.
func (s *server) skew(wanted request) error {
	action := v1alpha1.ControlAction(wanted.Action)
	if s.Skew == nil || action == v1alpha1.ControlAbort || !slices.Contains(decisions, action) {
		return nil
	}
	return s.Skew()
}

// statusOf is that of the cluster, or a conflict: what was asked for does not fit what there is.
func statusOf(err error) int {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.Status().Code >= http.StatusBadRequest {
		return int(status.Status().Code)
	}
	return http.StatusConflict
}

func carryOut(ctx context.Context, w rolloutapi.Writer, ro *v1alpha1.Rollout, wanted request) (string, error) {
	switch {
	case slices.Contains(decisions, v1alpha1.ControlAction(wanted.Action)):
		return decide(ctx, w, ro, wanted)
	case wanted.Action == view.Undo:
		return undo(ctx, w, ro, wanted)
	case wanted.Action != view.Pause && wanted.Action != view.Resume:
		return "", fmt.Errorf("there is no action %q", wanted.Action)
	}
	if now := ro.Status.Canary; now != nil && now.Revision != wanted.Revision || now == nil && wanted.Revision != "" {
		return "", fmt.Errorf("the Rollout %s no longer releases revision %s; look at it again before you decide", ro.Name, wanted.Revision)
	}
	changed, err := w.SetPaused(ctx, ro, wanted.Action == view.Pause)
	if !changed {
		return "Nothing had to change.", err
	}
	return wanted.Action + "d.", err
}

func decide(ctx context.Context, w rolloutapi.Writer, ro *v1alpha1.Rollout, wanted request) (string, error) {
	if wanted.Revision == "" {
		return "", fmt.Errorf("the decision %s names no revision", wanted.Action)
	}
	c, err := w.Decide(ctx, ro, rolloutview.Wish{Action: v1alpha1.ControlAction(wanted.Action), Revision: wanted.Revision, Step: wanted.Step, Reason: wanted.Reason})
	if err != nil {
		return "", err
	}
	if c.StepIndex != nil {
		return fmt.Sprintf("Requested: %s of revision %s in step %d.", c.Action, c.Revision, *c.StepIndex+1), nil
	}
	return fmt.Sprintf("Requested: %s of revision %s.", c.Action, c.Revision), nil
}

func undo(ctx context.Context, w rolloutapi.Writer, ro *v1alpha1.Rollout, wanted request) (string, error) {
	to, err := rolloutview.UndoTo(ro, "")
	if err != nil {
		return "", err
	}
	if to != wanted.Revision {
		return "", fmt.Errorf("the stable revision of the Rollout %s is %s, not %s; look at it again before you decide", ro.Name, to, wanted.Revision)
	}
	undone, err := w.Undo(ctx, ro, to)
	switch {
	case err != nil:
		return "", err
	case !undone.Changed:
		return "Nothing had to change.", nil
	}
	return fmt.Sprintf("The Deployment %s has the template of revision %s again.", undone.Deployment.Name, undone.Revision), nil
}
