// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"io"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// recordings keeps the recording that was read last, which takes a moment to judge again.
type recordings struct {
	known  bool // whether any was read yet, or that there is none
	stored string
	made   *view.Recording
}

// read reads the recording of the release that the Rollout shows: of its canary, or else of
// the last one that ended. made is nil where nothing is recorded. A recording that can't be read
// now leaves the last one: on a page, its table may be open, and settings typed in.
func (k *recordings) read(ctx context.Context, api client.Reader, ro *v1alpha1.Rollout) error {
	now, err := stored(ctx, api, ro)
	if err != nil || k.known && now == k.stored {
		return err
	}
	var made *view.Recording
	if now != "" {
		if made, err = view.MakeRecording(now); err != nil {
			return err
		}
	}
	*k = recordings{true, now, made}
	return nil
}

// stored is a recording as it is stored; "" without one.
func stored(ctx context.Context, api client.Reader, ro *v1alpha1.Rollout) (string, error) {
	key := shownRelease(ro)
	if key == "" {
		return "", nil
	}
	result := &v1alpha1.AnalysisResult{}
	err := api.Get(ctx, client.ObjectKeyFromObject(ro), result)
	return string(result.Status.Recordings[key]), client.IgnoreNotFound(err)
}

// whatIf judges the recording that the page shows again, with the settings that the viewer
// tries. Nothing is changed by it.
func (s *server) whatIf(w http.ResponseWriter, r *http.Request, v *Viewer) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	var change replay.Change
	if err == nil {
		change, err = replay.ReadChange(text)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "The settings can't be read: "+err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	ro := &v1alpha1.Rollout{}
	err = v.API.Get(ctx, keyIn(r), ro)
	var recorded string
	if err == nil {
		recorded, err = stored(ctx, v.API, ro)
	}
	switch {
	case err != nil:
		fail(w, statusOf(err), view.Sentence(cli.Explained(err).Error()))
		return
	case recorded == "":
		fail(w, http.StatusNotFound, "The release is not recorded.")
		return
	}
	tried, err := view.Try(recorded, change)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, http.StatusOK, tried)
}

// shownRelease is the key of a recording; "" when there was no release.
func shownRelease(ro *v1alpha1.Rollout) string {
	if c := ro.Status.Canary; c != nil && c.StartedAt != nil {
		return recording.Key(c.Revision, c.StartedAt.Time)
	}
	for _, h := range ro.Status.History {
		if h.StartedAt != nil {
			return recording.Key(h.Revision, h.StartedAt.Time)
		}
	}
	return ""
}
