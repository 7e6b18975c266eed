// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves the page on which users look at releases and decide about them.
//
//	view  what the pages show, and which buttons are possible  (pure)
//	page  the page itself: its sources, and what is built of them
//
// Every request to Kubernetes is made with the client of the viewer whose request it serves,
// so that the rights of the viewer decide. The server has no rights of its own, and must
// not cache for one viewer what another one has read.
package dashboard
