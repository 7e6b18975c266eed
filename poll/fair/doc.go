// SPDX-License-Identifier: Apache-2.0

// Package fair shares a few slots between namespaces, so that a namespace with many or slow
// tasks delays its own.
//
//	Queue   | who is next, pure
//	Slots   | waits for a slot
package fair
