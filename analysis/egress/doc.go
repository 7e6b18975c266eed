// SPDX-License-Identifier: Apache-2.0

// Package egress makes the requests that users of the cluster have the operator
// send: hooks, notifications and measurements. It is the one implementation of the
// rules for them:
//
//	http and https only            CheckURL
//	no user name in the URL        CheckURL
//	the operator's lists hold      Policy, for each request
//	the resolved address decides   Policy, in the moment of the connection
//	no redirect is followed        NewClient
//	no proxy of the environment    NewClient
//	at most 1 MiB of an answer     NewClient; headers 64 KiB
//	no word of an answer leaks     Describe
//
// A user may name any address, and the operator can reach more than the user can:
// without these rules it would be the user's way to the metadata of the cloud or to
// the API server. The package knows nothing about releases, and reads no Secret.
package egress
