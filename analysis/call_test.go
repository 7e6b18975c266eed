// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"testing"

	"github.com/serin-dev/serin/analysis"
)

func TestFailedCallsAreFailuresOfHTTPToo(t *testing.T) {
	last := 0
	for _, call := range analysis.FailedCalls() {
		if analysis.Classify(call.HTTP) != analysis.Failure {
			t.Errorf("the status %d of gRPC stands for %d, which is no failure", call.GRPC, call.HTTP)
		}
		if call.GRPC <= last || call.GRPC > 16 {
			t.Errorf("%d after %d", call.GRPC, last)
		}
		last = call.GRPC
	}
}
