// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
)

const (
	// writeTimeout bounds one write.
	writeTimeout = 30 * time.Second
	// undoTimeout bounds how long a command that failed takes things back.
	undoTimeout = 30 * time.Second
)

// write is a change of one object, and what takes it back.
type write struct {
	what     string
	do, undo func(context.Context, client.Client) error
}

// dryRun asks the API server whether it would take every write.
func dryRun(ctx context.Context, api client.Client, writes []write) error {
	pretend := client.NewDryRunClient(api)
	for _, w := range writes {
		if err := w.do(ctx, pretend); err != nil {
			return fmt.Errorf("%s: %w (nothing was changed)", w.what, err)
		}
	}
	return nil
}

// together carries out all writes. When one fails, those before it are taken back, also
// when the user has interrupted the command.
func together(ctx context.Context, api client.Client, writes []write) error {
	if err := dryRun(ctx, api, writes); err != nil {
		return err
	}
	for i, w := range writes {
		err := carryOut(ctx, api, w)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", w.what, err)
		if undone := takeBack(context.WithoutCancel(ctx), api, writes[:i]); undone != nil {
			return errors.Join(err, undone)
		}
		return fmt.Errorf("%w (the earlier changes were undone)", err)
	}
	return nil
}

// carryOut is not interrupted once it has begun: of a write that was cut off it is unknown
// whether it happened.
func carryOut(ctx context.Context, api client.Client, w write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return w.do(ctx, api)
}

func takeBack(ctx context.Context, api client.Client, writes []write) error {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	var errs []error
	for _, w := range slices.Backward(writes) {
		if err := w.undo(ctx, api); err != nil {
			errs = append(errs, fmt.Errorf("could not undo: %s: %w; undo it by hand", w.what, err))
		}
	}
	return errors.Join(errs...)
}

func createService(service *corev1.Service) write {
	made := service.DeepCopy()
	return write{
		what: "create the Service " + service.Name,
		do: func(ctx context.Context, api client.Client) error {
			made = service.DeepCopy()
			return api.Create(ctx, made)
		},
		undo: func(ctx context.Context, api client.Client) error {
			return api.Delete(ctx, made, client.Preconditions{UID: &made.UID})
		},
	}
}

func updateService(before, after *corev1.Service) write {
	made := after.DeepCopy()
	return write{
		what: "update the Service " + after.Name,
		do: func(ctx context.Context, api client.Client) error {
			made = after.DeepCopy()
			return api.Update(ctx, made)
		},
		undo: func(ctx context.Context, api client.Client) error {
			back := before.DeepCopy()
			back.ResourceVersion = made.ResourceVersion
			return api.Update(ctx, back)
		},
	}
}

func deleteService(service *corev1.Service) write {
	return write{
		what: "delete the Service " + service.Name,
		do: func(ctx context.Context, api client.Client) error {
			return api.Delete(ctx, service.DeepCopy(), client.Preconditions{UID: &service.UID, ResourceVersion: &service.ResourceVersion})
		},
		undo: func(ctx context.Context, api client.Client) error {
			again := service.DeepCopy()
			again.ResourceVersion, again.UID = "", ""
			return api.Create(ctx, again)
		},
	}
}

// patchSplit leads a split from one state to another.
func patchSplit(before, after *splitv1.TrafficSplit) write {
	var made *splitv1.TrafficSplit
	return write{
		what: "update the TrafficSplit " + after.Name,
		do: func(ctx context.Context, api client.Client) (err error) {
			made, err = changeSplit(ctx, api, before, after)
			return err
		},
		undo: func(ctx context.Context, api client.Client) error {
			_, err := changeSplit(ctx, api, made, before)
			return err
		},
	}
}

// changeSplit writes only what differs, so that fields which a mesh has added stay, and whatever status is written
// meanwhile. It fails when another user has changed the split since it was read.
func changeSplit(ctx context.Context, api client.Client, from, to *splitv1.TrafficSplit) (*splitv1.TrafficSplit, error) {
	var made *splitv1.TrafficSplit
	err := cli.RetryOnConflict(func() error {
		now := &splitv1.TrafficSplit{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(from), now); err != nil {
			return err
		}
		if !reflect.DeepEqual(decidedFrom(from), decidedFrom(now)) {
			return fmt.Errorf("the TrafficSplit %s was changed by another user meanwhile; look at it, and run the command again", now.Name)
		}
		made = now.DeepCopy()
		to.Spec.DeepCopyInto(&made.Spec) // the answer is decoded into it
		if text, tagged := to.Annotations[tags.Annotation]; tagged {
			metav1.SetMetaDataAnnotation(&made.ObjectMeta, tags.Annotation, text)
		} else {
			delete(made.Annotations, tags.Annotation)
		}
		return api.Patch(ctx, made, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}))
	})
	return made, err
}

// decidedFrom is what the change of a split was decided from.
func decidedFrom(split *splitv1.TrafficSplit) []any {
	annotations, rollout := split.Annotations, split.Labels[v1alpha1.LabelRollout]
	return []any{split.UID, split.Spec, annotations[tags.Annotation], annotations[splitv1.AnnotationRouting], rollout, split.OwnerReferences}
}
