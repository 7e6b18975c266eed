// SPDX-License-Identifier: Apache-2.0

// Package demo puts the parts of the demo together: a cluster with the images in
// it ([Prepare]), the story on a stage ([Demo.Play]) and the way back ([Remove]).
// `make demo` and the end-to-end test run the same functions.
package demo
