// SPDX-License-Identifier: Apache-2.0

// Package source reads the objects of other tools field by field, and keeps account of what
// was read: a field that no converter asked for is reported, or refused when it is not
// known at all. So nothing is lost in a migration without a word. It is pure.
package source
