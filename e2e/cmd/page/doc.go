// SPDX-License-Identifier: Apache-2.0

// Command page builds the page of the dashboard from its sources and the packages of its lock
// file, which npm installs in a folder of its own. With -check it only says whether what is
// committed is what would be built.
package main
