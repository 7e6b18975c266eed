// SPDX-License-Identifier: Apache-2.0

// Package payload renders what hooks are asked and what notifications tell: pure
// functions from what happened in a release to the body of an HTTP request. The
// same event always gives the same bytes, so that one that is told again, by
// another process even, is recognised.
//
// Whatever stands in a message, the body is valid JSON and mentions no user in a
// chat.
package payload
