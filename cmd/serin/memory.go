// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// startUp is how long controllers take to begin what they watch.
const startUp = 5 * time.Second

// addRelease has the memory returned that the first lists took to be read: without it, the
// Go runtime keeps room for as much garbage as there was then.
func addRelease(mgr manager.Manager, clock clock.Clock) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { // of the leader, which watches most
		select {
		case <-clock.After(startUp):
		case <-ctx.Done():
			return nil
		}
		if mgr.GetCache().WaitForCacheSync(ctx) {
			debug.FreeOSMemory()
		}
		return nil
	}))
}
