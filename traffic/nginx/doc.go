// SPDX-License-Identifier: Apache-2.0

// Package nginx is the router that sends traffic of a root Service through proxies, which
// are pods with nginx and Serin's agent in them. It makes their Kubernetes objects and reads
// what they serve. What nginx gets to serve is in package conf; nothing here talks to nginx.
package nginx
