// SPDX-License-Identifier: Apache-2.0

// Package nginx is the router that sends traffic of a root Service through nginx.
//
// Listeners, Render and the types they return are pure: they turn a
// traffic.Split into the text of nginx's configuration and into a table of
// weights, from typed values only. The agent in package proxy writes both where
// nginx finds them. The router makes the Kubernetes objects that the agent runs
// in. Nothing here talks to nginx.
package nginx
