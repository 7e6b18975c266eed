// SPDX-License-Identifier: Apache-2.0

package inventory

import "k8s.io/client-go/tools/cache"

// Feed is what the reflector of a resource writes to; nil when there is none.
func (w *Watcher) Feed(resource string) cache.ReflectorStore {
	for _, f := range w.feeds {
		if f.resource == resource {
			return f
		}
	}
	return nil
}
