// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Writer writes to Rollouts and their workloads as one user.
type Writer struct {
	API client.Client
	// DryRun is a value of the flag --dry-run.
	DryRun string
}

// Decide writes a decision about the Rollout, and reads the Rollout again when it was changed
// since: mostly that is Serin, which writes how the release goes, and once in a while another
// user who has decided.
func (w Writer) Decide(ctx context.Context, ro *v1alpha1.Rollout, wish rolloutview.Wish) (v1alpha1.Control, error) {
	control, err := rolloutview.Decide(ro, wish)
	if err != nil {
		return control, err
	}
	race := rolloutview.Race{Before: ro.DeepCopy(), Mine: control}
	stale := false
	err = cli.RetryOnConflict(func() error {
		if stale {
			decided, err := w.again(ctx, ro, wish, race)
			if decided || err != nil {
				return err
			}
		}
		stale = true
		patch, err := controlPatch(control, ro.ResourceVersion)
		if err != nil {
			return err
		}
		return cli.Patch(ctx, w.API, ro, patch, w.DryRun)
	})
	if w.DryRun == cli.DryClient {
		ro.Spec.Control = &control
	}
	return control, err
}

// again reads the Rollout once more. It returns whether another user has decided the same by
// now, so that there is nothing left to write.
func (w Writer) again(ctx context.Context, ro *v1alpha1.Rollout, wish rolloutview.Wish, r rolloutview.Race) (bool, error) {
	key := client.ObjectKeyFromObject(ro)
	*ro = v1alpha1.Rollout{}
	if err := w.API.Get(ctx, key, ro); err != nil {
		return false, err
	}
	if decided, err := r.Decided(ro); decided || err != nil {
		return decided, err
	}
	// What is released, and how far it is, may be another thing by now.
	control, err := rolloutview.Decide(ro, wish)
	if err != nil {
		return false, err
	}
	return false, r.Still(control)
}

// controlPatch replaces spec.control of one version of the Rollout. A "test" of the
// version would be answered like an object that is not valid; writing it is answered
// with a conflict when it is another one.
func controlPatch(control v1alpha1.Control, version string) (client.Patch, error) {
	return jsonPatch(
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
		map[string]any{"op": "add", "path": "/spec/control", "value": control},
	)
}

// jsonPatch is a JSON patch (RFC 6902) of operations.
func jsonPatch(operations ...map[string]any) (client.Patch, error) {
	text, err := json.Marshal(operations)
	return client.RawPatch(types.JSONPatchType, text), err
}
