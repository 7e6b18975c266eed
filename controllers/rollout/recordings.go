// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/tape"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
)

// eventNotRecorded says that a release can't be recorded.
const eventNotRecorded = "NotRecorded"

// recordings are the releases that are being recorded, and the recordings that are to be
// stored. A restart forgets them: what is stored is read again, and the gap is said.
type recordings struct {
	mu sync.Mutex
	of map[types.NamespacedName]*recorded
}

type recorded struct {
	tape.Tape
	// pending are the texts to store, by key; "" removes one.
	pending map[string]string
}

func (r *recordings) get(rollout types.NamespacedName) *recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.NamespacedName]*recorded{}
	}
	if r.of[rollout] == nil {
		r.of[rollout] = &recorded{pending: map[string]string{}}
	}
	return r.of[rollout]
}

func (r *recordings) forget(rollout types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, rollout)
}

// record adds what was judged to the recording, after it was reported.
func (r *Reconciler) record(ctx context.Context, ro *v1alpha1.Rollout, stored *v1alpha1.RolloutStatus, d *state.Decision) {
	rec := r.recordings.get(client.ObjectKeyFromObject(ro))
	if rec.Misses(d) {
		lines, err := r.stored(ctx, ro, d.Recorded)
		if err != nil { // it is looked for again in the next look; what is judged until then is in the gap
			log.FromContext(ctx).Error(err, "Could not read the recording of the release", "Rollout", klog.KObj(ro))
			return
		}
		rec.Continue(d.Recorded, lines)
	}
	text, err := rec.Look(stored, d)
	if err != nil {
		r.reporter().Record(ro, corev1.EventTypeWarning, eventNotRecorded, "The release is not recorded: "+err.Error())
		return
	}
	maps.Copy(rec.pending, text)
}

// stored are the lines of a release that were stored before the operator restarted. What
// can't be read is said and begun anew.
func (r *Reconciler) stored(ctx context.Context, ro *v1alpha1.Rollout, of recording.Release) ([]recording.Line, error) {
	result := &v1alpha1.AnalysisResult{}
	if err := r.options.Recordings.Get(ctx, client.ObjectKeyFromObject(ro), result); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	text, found := result.Status.Recordings[recording.Key(of.Revision, of.Began)]
	if !found {
		return nil, nil
	}
	lines, err := recording.ReadText(string(text))
	if err != nil {
		log.FromContext(ctx).Error(err, "The recording of the release starts again", "Rollout", klog.KObj(ro))
	}
	return lines, nil
}

// storeRecordings writes what is to be stored: after the actions, which wait for nothing.
func (r *Reconciler) storeRecordings(ctx context.Context, ro *v1alpha1.Rollout) error {
	rec := r.recordings.get(client.ObjectKeyFromObject(ro))
	if len(rec.pending) == 0 {
		return nil
	}
	err := r.patchRecordings(ctx, ro, rec.pending)
	if apierrors.IsInvalid(err) {
		// There are too many, or one is not what Serin writes: begin with these.
		if err = r.patchRecordings(ctx, ro, nil); err == nil {
			err = r.patchRecordings(ctx, ro, rec.pending)
		}
	}
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err):
		// To try it again would not help, and the release does not depend on it.
		r.reporter().Record(ro, corev1.EventTypeWarning, eventNotRecorded, "The recording of the release could not be stored: "+err.Error())
	default:
		return fmt.Errorf("store the recording: %w", err)
	}
	clear(rec.pending)
	return nil
}

// patchRecordings changes some recordings, or removes all.
func (r *Reconciler) patchRecordings(ctx context.Context, ro *v1alpha1.Rollout, texts map[string]string) error {
	var values map[string]any // null removes all of them
	for key, text := range texts {
		if values == nil {
			values = map[string]any{}
		}
		if values[key] = any(text); text == "" {
			values[key] = nil
		}
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"recordings": values}})
	if err != nil {
		return fmt.Errorf("render the recordings: %w", err)
	}
	result := metrics.MakeResult(client.ObjectKeyFromObject(ro), ro.UID)
	patch := func() error {
		return r.options.Recordings.Status().Patch(ctx, result.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
	}
	if err := patch(); !apierrors.IsNotFound(err) {
		return err
	}
	if err := r.options.Recordings.Create(ctx, result.DeepCopy(), client.FieldOwner(v1alpha1.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the AnalysisResult: %w", err)
	}
	return patch()
}
