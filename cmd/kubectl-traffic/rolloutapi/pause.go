// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

// SetPaused sets spec.paused and returns whether it was different.
func (w Writer) SetPaused(ctx context.Context, ro *v1alpha1.Rollout, paused bool) (changed bool, err error) {
	if ro.Spec.Paused == paused {
		return false, nil
	}
	patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
	if err := cli.Patch(ctx, w.API, ro, client.RawPatch(types.MergePatchType, []byte(patch)), w.DryRun); err != nil {
		return false, err
	}
	ro.Spec.Paused = paused
	return true, nil
}
