// SPDX-License-Identifier: Apache-2.0

// Package payload renders the bodies of hooks and notifications: pure
// functions from what happened in a release to the body of an HTTP request. The
// same event always gives the same bytes, so that a repeated one is recognised,
// also from another process.
//
// Whatever stands in a message, the body is valid JSON and mentions no user in a
// chat.
package payload
