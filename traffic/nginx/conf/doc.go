// SPDX-License-Identifier: Apache-2.0

// Package conf turns a traffic.Split into what nginx serves: the text of nginx.conf, a table
// of weights, and the sockets that it listens on. It also names the files in the folder that
// nginx and the agent share.
//
// Everything in it is pure and made from typed values only. The agent in package proxy
// writes the results where nginx finds them.
package conf
