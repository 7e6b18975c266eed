// SPDX-License-Identifier: Apache-2.0

// Package identities is a provider of OpenID Connect for tests: that of the example of a
// library which providers are built with, on a listener with TLS. Each of its users is called
// by their name. It must not be used for anything but tests: its password and keys are no secrets.
package identities
