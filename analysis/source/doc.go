// SPDX-License-Identifier: Apache-2.0

// Package source says what a measurement is, from any provider. Each folder below it
// knows one place to measure at; none of them knows the others, Kubernetes or a
// release, and none decides anything.
//
// What they have in common: a measurement that is anything but one good number is a
// MissingError, with a reason. Nothing is guessed, clamped or filled up with zero, and no
// word of an answer gets into an error, since errors are shown to users who may not
// be allowed to read the answer.
package source
