// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"strings"
	"testing"
)

// testWriter writes to the log of a test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(text []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
