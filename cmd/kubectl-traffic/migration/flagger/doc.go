// SPDX-License-Identifier: Apache-2.0

// Package flagger turns the objects of Flagger (flagger.app/v1beta1) into those of Serin. It
// reads them field by field and has no type of Flagger's. It is pure.
package flagger
