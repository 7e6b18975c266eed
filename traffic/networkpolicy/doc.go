// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy derives from the NetworkPolicies of users what proxies need while they
// stand between clients and an app: clients that may reach the app reach the proxies, the
// proxies reach the app, and no other pod does. It is pure.
//
//	made for            | selects                                    | allows
//	proxies             | the proxies                                | ingress as the app has it, the readers of counters; egress to the app and the API server
//	pods of the app     | those that a policy isolates for ingress   | ingress from the proxies
//	clients of the app  | those that a policy isolates for egress    | egress to the proxies, where that policy allows the app
//
// NetworkPolicies only ever add to each other, and the first that selects a pod isolates it. So
// no policy that is made here selects a pod but a proxy that the policies which it names as
// owners do not isolate already, in the same direction. When these are deleted, so is it.
//
// What no further policy can put right is refused, with the policy and the remedy.
package networkpolicy
