// SPDX-License-Identifier: Apache-2.0

// Package debian fetches packages of one release of Debian for any architecture, with an
// apt-get that has a folder of its own: the lists, the release and the configuration of the
// machine are neither used nor changed, and nothing is installed.
//
// apt verifies the lists by Debian's keys, and each package by the lists.
package debian
