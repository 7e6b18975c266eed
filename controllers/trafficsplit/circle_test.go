// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// The cache lists in any order, and the circle that is reported stays the same.
func TestTheSplitsOfARootAreInOneOrder(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		split := makeSplit(1, 1)
		split.Name = name
		w.create(split)
	}
	for _, backwards := range []bool{false, true} {
		r := w.controller()
		r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if splits, ok := list.(*splitv1.TrafficSplitList); ok && backwards {
					slices.Reverse(splits.Items)
				}
				return err
			},
		})
		splits, err := r.splitsOf(t.Context(), namespace, "web")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, split := range splits {
			got = append(got, split.Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("backwards %v: got %v", backwards, got)
		}
	}
}
