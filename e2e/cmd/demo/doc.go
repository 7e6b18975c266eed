// SPDX-License-Identifier: Apache-2.0

// Command demo shows Serin on a real cluster: a good version is promoted and a
// bad one is rolled back, under traffic. Its exit status tells whether everything
// was as promised.
package main
