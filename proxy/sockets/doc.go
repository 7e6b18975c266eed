// SPDX-License-Identifier: Apache-2.0

// Package sockets has the sockets that clients connect to. They belong to the agent and its
// fd store, so that they outlive every nginx and every agent. It accepts and reads nothing.
package sockets
