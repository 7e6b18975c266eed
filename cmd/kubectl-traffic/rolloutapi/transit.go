// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Transit sets spec.transition of a CanaryRelease, and returns whether it was another one.
// Nothing is done when another user has changed the spec since cr was read; a cr that has only
// a name is read first.
func (w Writer) Transit(ctx context.Context, cr *v1alpha1.CanaryRelease, wanted v1alpha1.CanaryTransition) (asked bool, err error) {
	seen := cr.DeepCopy()
	// The controller writes the status at any time.
	err = cli.RetryOnConflict(func() error {
		if err := w.API.Get(ctx, client.ObjectKeyFromObject(seen), cr); err != nil {
			return err
		}
		if seen.UID == "" {
			seen = cr.DeepCopy()
		}
		if seen.UID != cr.UID || seen.Generation != cr.Generation {
			return fmt.Errorf("the CanaryRelease %s was changed by another user meanwhile, and nothing was done; look at it, and ask again", cr.Name)
		}
		ask, err := rolloutview.Transit(cr, wanted)
		if err != nil || !ask {
			return err
		}
		before := cr.DeepCopy()
		cr.Spec.Transition = wanted
		asked = true
		return cli.Patch(ctx, w.API, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), w.DryRun)
	})
	return asked, err
}
