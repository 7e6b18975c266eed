// SPDX-License-Identifier: Apache-2.0

// Package releases is what the controller of CanaryReleases and the program that runs Helm
// have in common, without Helm: what is asked and answered, and how errors are told.
//
//	Releases          | what the controller asks
//	State             | a release by the labels of its records
//	Guard             | stands between a caller and the API server
//	Call, Answer      | a request to the program and its answer, as JSON
package releases
