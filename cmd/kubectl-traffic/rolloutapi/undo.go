// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Undone is a Deployment that was given the template of a revision.
type Undone struct {
	Deployment *appsv1.Deployment
	Revision   string
	// Changed is whether it had another template before.
	Changed bool
}

// Undo gives the Deployment of a Rollout the template of a revision; "" is the stable one.
func (w Writer) Undo(ctx context.Context, ro *v1alpha1.Rollout, revision string) (Undone, error) {
	u := Undone{Deployment: &appsv1.Deployment{}}
	var err error
	if u.Revision, err = rolloutview.UndoTo(ro, revision); err != nil {
		return u, err
	}
	workload := ro.Spec.WorkloadRef.Name
	set := &appsv1.ReplicaSet{}
	key := client.ObjectKey{Namespace: ro.Namespace, Name: workload + "-" + u.Revision}
	if err := w.API.Get(ctx, key, set); err != nil {
		return u, fmt.Errorf("find the template of revision %s: %w", u.Revision, err)
	}
	// The Deployment controller writes the status of a Deployment at any time.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := u.Deployment
		if err := w.API.Get(ctx, client.ObjectKey{Namespace: ro.Namespace, Name: workload}, d); err != nil {
			return err
		}
		before := d.DeepCopy()
		putBack(d, set)
		if reflect.DeepEqual(before.Spec.Template, d.Spec.Template) {
			return nil
		}
		u.Changed = true
		return cli.Patch(ctx, w.API, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), w.DryRun)
	})
	return u, err
}

// putBack gives a Deployment the template of one of its ReplicaSets.
func putBack(d *appsv1.Deployment, set *appsv1.ReplicaSet) {
	set.Spec.Template.DeepCopyInto(&d.Spec.Template)
	delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
}
