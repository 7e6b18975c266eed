// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// neverAfter is when a test gives up what it waits for.
	neverAfter = 5 * time.Minute
	// mostOften is how often a condition is looked at where much happens.
	mostOften = 50 * time.Millisecond
	// unseen is how often it is looked at where nothing happens that the shared cache sees.
	unseen = 250 * time.Millisecond
)

// poll asks for a condition until it holds; false when it never does.
func poll(ctx context.Context, condition func(context.Context) bool) bool {
	err := wait.PollUntilContextTimeout(ctx, mostOften, neverAfter, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	return err == nil
}

// poll asks for a condition whenever something in the namespace has changed, until it
// holds; false when it never does.
func (s *scene) poll(condition func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(s.Context(), neverAfter)
	defer cancel()
	for {
		changed := changes.next(s.namespace)
		if condition(ctx) {
			return true
		}
		again := time.NewTimer(unseen)
		select {
		case <-ctx.Done():
			return false
		case <-changed:
			again.Reset(mostOften)
			<-again.C
		case <-again.C:
		}
	}
}
