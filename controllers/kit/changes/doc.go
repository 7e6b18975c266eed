// SPDX-License-Identifier: Apache-2.0

// Package changes notifies a controller of what happened outside of the API: which objects
// to look at again. It may lose a notification, and carries nothing but names.
package changes
