// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// recordingOf reads the recording of the release that the Rollout shows: of its canary, or
// else of the last one that ended. It is nil where nothing is recorded.
func recordingOf(ctx context.Context, api client.Reader, ro *v1alpha1.Rollout) (*view.Recording, error) {
	key := shownRelease(ro)
	if key == "" {
		return nil, nil
	}
	result := &v1alpha1.AnalysisResult{}
	if err := api.Get(ctx, client.ObjectKeyFromObject(ro), result); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	stored, found := result.Status.Recordings[key]
	if !found {
		return nil, nil
	}
	return view.MakeRecording(string(stored))
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
