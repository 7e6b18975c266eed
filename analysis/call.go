// SPDX-License-Identifier: Apache-2.0

package analysis

import "net/http"

// A FailedCall is a status of gRPC that tells of a failure of the server.
type FailedCall struct {
	// GRPC is the number of the status, of google.rpc.Code (google/rpc/code.proto).
	GRPC int
	// HTTP is the status that stands for it.
	HTTP int
}

// FailedCalls are all of them, in the order of their numbers. The answer of a failed call
// has the HTTP status 200, so without them no failure would ever show. The other
// statuses are answers that a bad call deserves, such as NOT_FOUND.
func FailedCalls() []FailedCall {
	return []FailedCall{
		{2, http.StatusInternalServerError},  // UNKNOWN
		{4, http.StatusGatewayTimeout},       // DEADLINE_EXCEEDED
		{12, http.StatusNotImplemented},      // UNIMPLEMENTED
		{13, http.StatusInternalServerError}, // INTERNAL
		{14, http.StatusServiceUnavailable},  // UNAVAILABLE
		{15, http.StatusInternalServerError}, // DATA_LOSS
	}
}
