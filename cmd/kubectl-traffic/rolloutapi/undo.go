// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	before := d.Spec.Template.DeepCopy()
	putBack(d, set)
	if reflect.DeepEqual(*before, d.Spec.Template) {
		return u, nil
	}
	patch, err := templatePatch(d.Spec.Template)
	if err != nil {
		return u, err
	}
	u.Changed = true
	return u, cli.Patch(ctx, w.API, d, patch, w.DryRun)
}

// putBack gives a Deployment the template of one of its ReplicaSets.
func putBack(d *appsv1.Deployment, set *appsv1.ReplicaSet) {
	set.Spec.Template.DeepCopyInto(&d.Spec.Template)
	delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
}

// templatePatch replaces the template as a whole, as `kubectl rollout undo` does: whatever the Deployment has become
// meanwhile, it gets this template and no mixture. So it names no version of the Deployment, whose controller writes it
// several times in the moment after a change of the template, which is when users undo one.
func templatePatch(template corev1.PodTemplateSpec) (client.Patch, error) {
	text, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
	return client.RawPatch(types.JSONPatchType, text), err
}
