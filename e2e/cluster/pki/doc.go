// SPDX-License-Identifier: Apache-2.0

// Package pki makes the keys, certificates and kubeconfig files by which the
// parts of one local cluster know each other. Everything is signed by
// authorities made for that cluster alone; nothing here is meant for production.
package pki
