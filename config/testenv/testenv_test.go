// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"fmt"
	"testing"

	"github.com/serin-dev/serin/config/testenv"
)

// recorder is a test that notes how it would end.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.end += "failed: " + fmt.Sprintf(format, args...)
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end += "skipped: " + fmt.Sprintf(format, args...)
}

func TestWhatIsMissingFailsInContinuousIntegration(t *testing.T) {
	for ci, want := range map[string]string{
		"true":  "failed: not possible here: there is no nginx; install the package nginx (with CI=true nothing is skipped)",
		"false": "skipped: not possible here: there is no nginx; install the package nginx",
		"":      "skipped: not possible here: there is no nginx; install the package nginx",
	} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		testenv.Missing(r, "there is no nginx", "install the package nginx")
		if r.end != want {
			t.Errorf("with CI=%s the test %s, want %s", ci, r.end, want)
		}
	}
}
