// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
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
	d := u.Deployment
	if err := w.API.Get(ctx, client.ObjectKey{Namespace: ro.Namespace, Name: workload}, d); err != nil {
		return u, err
	}
	template := set.Spec.Template
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if reflect.DeepEqual(d.Spec.Template, template) {
		return u, nil
	}
	// The template is replaced as a whole, as kubectl rollout undo does: whatever the Deployment has become meanwhile, it
	// gets this template and no mixture. So no version of the Deployment is named, whose controller writes it several
	// times in the moment after a change of the template, which is when users undo one.
	patch, err := jsonPatch(map[string]any{"op": "replace", "path": "/spec/template", "value": template})
	if err != nil {
		return u, err
	}
	d.Spec.Template, u.Changed = template, true
	return u, cli.Patch(ctx, w.API, d, patch, w.DryRun)
}
