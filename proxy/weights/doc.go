// SPDX-License-Identifier: Apache-2.0

// Package weights keeps the weights of HTTP listeners where nginx looks them up for each
// request: in links and modes of files, which change without a reload. It decides nothing,
// and does not wait until nginx has forgotten what it found before.
package weights
