// SPDX-License-Identifier: Apache-2.0

// Package child calls Helm in a process of its own, whose memory, time and output are limited,
// so that what a tenant writes in a chart can't harm the manager.
//
//	Releases      | what the controller asks; a slot for each call, fair between namespaces
//	program       | one call of the program serin-helm
//	verdict       | which limit ended it, pure
//	gateway       | the way of the process to the API server, as the account of the namespace
package child
