// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/serin-dev/serin/controllers/workload"
)

// Changes lets pass the events of Deployments and ReplicaSets after which a reader of the cache
// finds something else than before. That leaves out the updates of what the cache does not keep:
// nothing that is decided from the cache is another decision after them.
func Changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !workload.Same(e.ObjectOld, e.ObjectNew) }}
}
