// SPDX-License-Identifier: Apache-2.0

// Package certificate gives all replicas of an aggregated API server one certificate,
// renews it in time, and announces to the kube-apiserver by which authority it is known.
//
//	Secret (certificate, key, authorities) ◄── each replica: read, renew when due
//	APIService.spec.caBundle               ◄── the authorities of the Secret
//
// No replica leads: a Secret is only replaced by a replica that has read its latest
// version. The authority of a certificate signs that one and its key is thrown away, so
// that nothing in the cluster could sign another. See docs/decisions/040.
package certificate
