// SPDX-License-Identifier: Apache-2.0

// Command gendocs writes a page of documentation for each command of kubectl traffic
// into the folder that it is given, from what the commands say of themselves. Pages of
// commands that are gone are removed.
package main
