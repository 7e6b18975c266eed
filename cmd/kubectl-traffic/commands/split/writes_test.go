// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
)

func TestAnInterruptedCommandChangesNothingOrSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	api := fake.NewClientBuilder().Build()
	var done []string
	step := func(name string, during func(context.Context) error) write {
		return write{
			what: name,
			do: func(ctx context.Context, to client.Client) error {
				if to != api {
					return nil // the dry run
				}
				done = append(done, name)
				return during(ctx)
			},
			undo: func(ctx context.Context, _ client.Client) error {
				done = append(done, "undo "+name)
				return ctx.Err()
			},
		}
	}
	err := together(ctx, api, []write{
		step("a", func(ctx context.Context) error {
			interrupt()
			return ctx.Err() // a write that has begun is carried out
		}),
		step("b", func(context.Context) error { return nil }),
	})
	if !errors.Is(err, context.Canceled) || !slices.Equal(done, []string{"a", "undo a"}) {
		t.Errorf("%v: %v", done, err)
	}
}

// writtenMeanwhile has another writer change the split as often as that: right before each patch of it, and right after
// each that is no dry run.
func writtenMeanwhile(changes int, change func(*splitv1.TrafficSplit)) interceptor.Funcs {
	write := func(ctx context.Context, api client.Client, split *splitv1.TrafficSplit) error {
		if changes == 0 {
			return nil
		}
		changes--
		if err := api.Get(ctx, client.ObjectKeyFromObject(split), split); err != nil {
			return err
		}
		change(split)
		return api.Update(ctx, split)
	}
	return interceptor.Funcs{Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		other := o.DeepCopyObject().(*splitv1.TrafficSplit)
		if err := write(ctx, api, other); err != nil {
			return err
		}
		err := api.Patch(ctx, o, p, options...)
		if dry := (&client.PatchOptions{}).ApplyOptions(options).DryRun; err != nil || len(dry) > 0 {
			return err
		}
		return write(ctx, api, other)
	}}
}

// The controller writes the status of a split at any time, mostly right after a change of it.
func TestAnUpdateAndItsUndoOutlastTheStatusesThatAreWrittenMeanwhile(t *testing.T) {
	const statuses = 5
	refusal := errors.New("refused for the test")
	for name, status := range map[string]func(*splitv1.TrafficSplit){
		"a status": func(split *splitv1.TrafficSplit) {
			split.Status.Conditions = append(split.Status.Conditions, metav1.Condition{})
		},
		"a status in an annotation": func(split *splitv1.TrafficSplit) {
			split.Annotations[splitv1.AnnotationStatus] += "."
		},
	} {
		for _, refused := range []error{nil, refusal} {
			t.Run(fmt.Sprint(name, ", then ", refused), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fails := writtenMeanwhile(statuses, status)
					fails.Delete = func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.DeleteOption) error {
						if dry := (&client.DeleteOptions{}).ApplyOptions(options).DryRun; refused != nil && len(dry) == 0 && o.GetName() == "stable-echo" {
							return refused
						}
						return api.Delete(ctx, o, options...)
					}
					api := newWorld(t, fails, echoSplit())
					want := stateOf(t, api).Backends
					if refused == nil {
						want = []splitv1.Backend{{Service: "echo-v2", Weight: 98}, {Service: "echo-v3", Weight: 2}}
					}
					err := updated(t, api, cli.DryNone, everything)
					if !errors.Is(err, refused) || err != nil && !strings.HasSuffix(err.Error(), "(the earlier changes were undone)") {
						t.Error(err)
					}
					split := &splitv1.TrafficSplit{}
					if err := api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "echo"}, split); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, split.Spec.Backends); diff != "" {
						t.Error(diff)
					}
					if written := len(split.Status.Conditions) + len(split.Annotations[splitv1.AnnotationStatus]); written != statuses {
						t.Errorf("of %d statuses there are %d", statuses, written)
					}
				})
			})
		}
	}
}

func TestAnUpdateOverwritesNoChangeOfAnotherUser(t *testing.T) {
	for name, change := range map[string]func(*splitv1.TrafficSplit){
		"other weights":             func(split *splitv1.TrafficSplit) { split.Spec.Backends[0].Weight = 1 },
		"a tag":                     func(split *splitv1.TrafficSplit) { split.Annotations[tags.Annotation] = `{"next":"echo-v1"}` },
		"weights for single ports":  func(split *splitv1.TrafficSplit) { split.Annotations[splitv1.AnnotationRouting] = "{}" },
		"it belongs to a Rollout":   func(split *splitv1.TrafficSplit) { split.Labels = map[string]string{v1alpha1.LabelRollout: "echo"} },
		"a Rollout owns it":         func(split *splitv1.TrafficSplit) { split.OwnerReferences = echoOwner() },
		"another split of its name": func(split *splitv1.TrafficSplit) { split.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			theirs := echoSplit()
			change(theirs)
			want := stateOf(t, newWorld(t, interceptor.Funcs{}, theirs))
			api := newWorld(t, writtenMeanwhile(1, change), echoSplit())
			err := updated(t, api, cli.DryNone, everything)
			if err == nil || !strings.Contains(err.Error(), "the TrafficSplit echo was changed by another user meanwhile; look at it, and run the command again") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(want, stateOf(t, api)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func echoOwner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "serin.dev/v1alpha1", Kind: "Rollout", Name: "echo", UID: "x"}}
}
