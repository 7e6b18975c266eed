// SPDX-License-Identifier: Apache-2.0

// Package login finds out who looks at the dashboard where it is served to many users: by
// OpenID Connect (code flow with PKCE), or by a bearer token of the cluster that the user
// pastes. The token of the viewer is what the API server gets; the package has no
// credentials of its own for the cluster, and must not ask it anything without a viewer's token.
//
//	provider  the OpenID Connect provider: begin, finish, refresh, revoke
//	state     what a session holds, and when it is refreshed or over   (pure)
//	login     the requests of the browser
//	viewers   a client of the API server for each token
package login
