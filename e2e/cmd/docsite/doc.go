// SPDX-License-Identifier: Apache-2.0

// Command docsite writes the site of the documents into a folder. Run it in the folder e2e.
//
//	docsite [FOLDER]
package main
