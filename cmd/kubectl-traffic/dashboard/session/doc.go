// SPDX-License-Identifier: Apache-2.0

// Package session keeps the state of a login in cookies of the browser: encrypted and
// authenticated with a key of the server, so that it can be neither read nor changed
// without that key. The server itself keeps nothing, and must not log what a session holds.
package session
