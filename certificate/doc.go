// SPDX-License-Identifier: Apache-2.0

// Package certificate gives all replicas of a server that the kube-apiserver calls one
// certificate, renews it in time, and announces to the kube-apiserver by which authority it
// is known: to an aggregated API server's APIService, or to the configuration of webhooks.
//
//	Secret (certificate, key, authorities) ◄── each replica: read, renew when due
//	APIService.spec.caBundle               ◄── the authorities of the Secret
//	webhooks[].clientConfig.caBundle       ◄── the same
//
// No replica leads: a Secret is only replaced by a replica that has read its latest
// version. The authority of a certificate signs that one and its key is thrown away, so
// that nothing in the cluster could sign another. See docs/decisions/040.
package certificate
