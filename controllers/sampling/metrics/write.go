// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// write has an AnalysisResult written, now or as soon as it may be.
func (l *Loop) write(rollout types.NamespacedName, r *release) {
	if r.queued {
		return
	}
	r.queued = true
	l.writes.AddAfter(rollout, r.writeAt.Sub(l.clock.Now()))
}

// writeResults writes until the queue is shut down. One writer is enough: what is
// written is for users, and nothing waits for it.
func (l *Loop) writeResults(ctx context.Context) {
	for {
		rollout, over := l.writes.Get()
		if over {
			return
		}
		if err := l.writeResult(ctx, rollout); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Error(err, "An AnalysisResult was not written; it is tried again", "AnalysisResult", rollout)
			l.writes.AddRateLimited(rollout)
		} else {
			l.writes.Forget(rollout)
		}
		l.writes.Done(rollout)
	}
}

func (l *Loop) writeResult(ctx context.Context, rollout types.NamespacedName) error {
	status, owner, wanted := l.take(rollout)
	if !wanted {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("render the status: %w", err)
	}
	result := &v1alpha1.AnalysisResult{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: rollout.Name}}
	// The list of metrics is replaced as a whole, which a merge patch does.
	patch := client.RawPatch(types.MergePatchType, body)
	err = l.results.Status().Patch(ctx, result, patch)
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := l.results.Create(ctx, MakeResult(rollout, owner)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create it: %w", err)
	}
	return l.results.Status().Patch(ctx, result, patch)
}

// take is what to write for a release, from now on no longer queued.
func (l *Loop) take(rollout types.NamespacedName) (status v1alpha1.AnalysisResultStatus, owner types.UID, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.releases[rollout]
	if r == nil {
		return status, "", false
	}
	r.queued = false
	r.writeAt = l.clock.Now().Add(l.options.WriteEvery)
	return makeStatus(r), r.spec.Owner, true
}

// MakeResult is the AnalysisResult of a Rollout, which owns it.
func MakeResult(rollout types.NamespacedName, owner types.UID) *v1alpha1.AnalysisResult {
	controller := true
	return &v1alpha1.AnalysisResult{ObjectMeta: metav1.ObjectMeta{
		Namespace: rollout.Namespace, Name: rollout.Name,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout", Name: rollout.Name, UID: owner, Controller: &controller,
		}},
	}}
}
