// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/serin-dev/serin/poll/fair"
)

// Serve does what a queue gives, each in a slot of its namespace, until the queue is shut
// down, and waits for all that is under way. What has no namespace any more is left out.
func Serve[K comparable](queue workqueue.TypedInterface[K], slots *fair.Slots, namespace func(K) (of string, there bool), do func(K)) {
	var busy sync.WaitGroup
	for {
		key, over := queue.Get()
		if over {
			break
		}
		of, there := namespace(key)
		if !there {
			queue.Done(key)
			continue
		}
		busy.Add(1)
		slots.Go(of, func() {
			defer busy.Done()
			defer queue.Done(key)
			do(key)
		})
	}
	busy.Wait()
}
