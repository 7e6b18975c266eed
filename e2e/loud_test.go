// SPDX-License-Identifier: Apache-2.0

package e2e_test

import "testing"

// mark is before each failure of a story, whose log is long: what runs the tests looks for it,
// and tells the failures again at its end.
const mark = "FAILED:"

// loud is a test that marks its failures.
type loud struct{ *testing.T }

func (t loud) Error(args ...any) {
	t.Helper()
	t.T.Error(append([]any{mark}, args...)...)
}

func (t loud) Errorf(format string, args ...any) {
	t.Helper()
	t.T.Errorf(mark+" "+format, args...)
}

func (t loud) Fatal(args ...any) {
	t.Helper()
	t.T.Fatal(append([]any{mark}, args...)...)
}

func (t loud) Fatalf(format string, args ...any) {
	t.Helper()
	t.T.Fatalf(mark+" "+format, args...)
}
