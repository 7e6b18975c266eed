// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
