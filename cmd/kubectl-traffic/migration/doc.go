// SPDX-License-Identifier: Apache-2.0

// Package migration turns the objects of Argo Rollouts and of Flagger into those of Serin,
// and reports each field that has no equivalent, differs, or leaves the user something to do. An
// input that can't be understood is an error that names file, object, field and fix. It is
// pure; below it are the reader of objects (source), what is written (target), and a package
// for each of the two tools.
package migration
