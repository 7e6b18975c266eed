// SPDX-License-Identifier: Apache-2.0

package chart

import "github.com/serin-dev/serin/controllers/canaryrelease/releases"

// What is asked and answered is known to the controller too.
type (
	// Release is what there is of a Helm release.
	Release = releases.Release
	// Proposal is a release as it is and as it would be.
	Proposal = releases.Proposal
	// Request names what is asked for.
	Request = releases.Request
	// InvalidError says that a user has to change something.
	InvalidError = releases.InvalidError
)

const (
	fieldConfig  = releases.FieldConfig
	fieldPath    = releases.FieldPath
	fieldRelease = releases.FieldRelease
	fieldVersion = releases.FieldVersion
)
