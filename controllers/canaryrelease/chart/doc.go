// SPDX-License-Identifier: Apache-2.0

// Package chart knows Helm, so that the controller of CanaryReleases need not: what a
// release would be with other values, and its upgrade. It is part of the program
// serin-helm, which package child limits.
//
// Every call acts as a ServiceAccount of the release's namespace, which has the
// rights that the namespace gave it, and no more. Values, manifests and what
// templates print appear in no log and no error. A render writes nothing, reaches
// no other host than the API server, and reads no file.
//
// Its parts: record.go reads Helm's records, archive.go the charts with sub-charts
// that records lack, values.go and schema.go merge and check values, render.go
// renders, package compare judges, adopt.go upgrades and session.go is the
// connection.
package chart
