// SPDX-License-Identifier: Apache-2.0

// Package compare tells what a change of values makes of a Helm release: which
// Deployments get a canary, what the canary's pods need beside what is there, what
// only an adoption changes, and why there can be no canary.
//
// Its input are the objects of the manifest on record, and those of the candidate,
// rendered twice. Whatever a canary could not try without harm to what runs is
// refused by name: rather no canary than one that shows something else than what an
// adoption would bring.
//
// The package is pure. It sees the contents of Secrets, and shows none: its texts
// hold kinds and names only.
package compare
