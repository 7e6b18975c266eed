// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLooksThatFailGetRare(t *testing.T) {
	var got []int
	for failed := range 8 {
		got = append(got, pauseAfter(failed))
	}
	if diff := cmp.Diff([]int{1, 1, 2, 4, 8, 16, 16, 16}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstLookIsNotCutOffByAShortLimit(t *testing.T) {
	over := errors.New("the time is over")
	for _, test := range []struct {
		name   string
		takes  time.Duration
		found  bool
		shown  int
		after  time.Duration
		result error
	}{
		{name: "it is there", takes: 5 * time.Second, found: true, shown: 1, after: 5 * time.Second},
		{name: "it is not there", takes: 5 * time.Second, shown: 1, after: 5 * time.Second, result: over},
		{name: "the limit is reached between looks", shown: 2, after: 2 * time.Second, result: over},
		{name: "the server does not answer", takes: time.Hour, shown: 1, after: lookTimeout, result: over},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, shown := time.Now(), 0
				err := Wait(t.Context(), 2*time.Second-time.Millisecond, Watch{
					Look: func(ctx context.Context) error {
						select {
						case <-time.After(test.takes):
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					},
					Show: func(error) (bool, error) {
						shown++
						return test.found, nil
					},
					End: func(error, error) error { return over },
				})
				if after := time.Since(began); !errors.Is(err, test.result) || shown != test.shown || after.Round(time.Second) != test.after {
					t.Errorf("after %v and %d looks that were shown: %v; want after %v and %d: %v", after, shown, err, test.after, test.shown, test.result)
				}
			})
		})
	}
}
