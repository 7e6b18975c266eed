// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// backlog is how many changes may wait for the controller.
const backlog = 1024

// Channel carries the names of objects.
type Channel chan event.TypedGenericEvent[types.NamespacedName]

// New makes a Channel.
func New() Channel { return make(Channel, backlog) }

// Notify passes on that something changed. It never blocks: a change that finds no room is
// dropped, so it suits only what changes again and again.
func (c Channel) Notify(object types.NamespacedName) {
	select {
	case c <- event.TypedGenericEvent[types.NamespacedName]{Object: object}:
	default:
	}
}

// Changed is what the controller reads.
func (c Channel) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] { return c }
