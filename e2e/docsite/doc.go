// SPDX-License-Identifier: Apache-2.0

// Package docsite makes a static site of the documents: a page for each Markdown file, with
// the index as navigation and a search that needs no server. It changes links, and no words.
//
// A page links to others as the Markdown does; what is no page of the site is linked in the
// repository. It does no I/O but reading the folder that it is given.
package docsite
