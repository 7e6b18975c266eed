// SPDX-License-Identifier: Apache-2.0

// Package changes tells a controller of what happened outside of the API: which objects to
// look at again. It may lose what it is told, and carries nothing but names.
package changes
