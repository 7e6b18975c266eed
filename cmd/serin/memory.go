// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// startUp is how long controllers take to read what they watch, and to look at all of it once.
const startUp = 30 * time.Second

// addRelease has the memory returned that the first look at everything took: without it, the
// Go runtime keeps room for garbage that it does not make again.
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
