// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package images

import (
	"testing"

	"github.com/serin-dev/serin/config/testenv"
)

func runInRoot(t *testing.T, _, _ string, _ ...string) (string, error) {
	testenv.Missing(t, "the programs of the image run on Linux only", "run the test on Linux")
	return "", nil
}
