// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"fmt"
	"testing"
)

func (l limits) String() string {
	s := ""
	if l.min != nil {
		s += fmt.Sprintf("min %v ", *l.min)
	}
	if l.max != nil {
		s += fmt.Sprintf("max %v ", *l.max)
	}
	if l.strict {
		s += "strict "
	}
	if l.orMissing {
		s += "or missing "
	}
	return s
}

func TestConditions(t *testing.T) {
	const no = "not understood"
	for _, test := range []struct {
		read            func(string) (limits, bool)
		condition, want string
	}{
		{success, "result >= 0.95", "min 0.95 "},
		{success, "result[0] >= 0.95", "min 0.95 "},
		{success, "result[0] < 0.05", "max 0.05 strict "},
		{success, "0.95 <= result[0]", "min 0.95 "},
		{success, "result == 5", "min 5 max 5 "},
		{success, "result[0] >= 1 && result[0] <= 2.5", "min 1 max 2.5 "},
		{success, "(result[0] >= 1) && (result[0] <= 2.5)", "min 1 max 2.5 "},
		{success, "len(result) == 0 || result[0] >= 0.95", "min 0.95 or missing "},
		{success, "isNaN(result[0]) || result[0] > -1", "min -1 strict or missing "},
		{success, "len(result) > 0 && result[0] >= 0.95", "min 0.95 "},
		{success, "default(result, 0) < 5", "max 5 strict "},
		{success, "asFloat(result[0]) >= 5", "min 5 "},
		{success, "all(result, # >= 0.9)", "min 0.9 "},
		{success, "all(result, {# < 5})", "max 5 strict "},
		{success, "result == 'true'", no},
		{success, "result.ok == true", no},
		{success, "result[0] >= 1 || result[0] <= 0", no},
		{success, "result[0] >= 1 && result[0] >= 2", no},
		{success, "result[0] / result[1] >= 1", no},
		{success, "result[1] >= 1", no},
		{success, "len(result) == 0", no},
		{success, "result != 1", no},
		{failure, "result >= 10", "max 10 strict "},
		{failure, "result[0] < 0.9", "min 0.9 "},
		{failure, "result[0] < 0.9 || result[0] > 2", "min 0.9 max 2 "},
		{failure, "len(result) > 0 && result[0] <= 0.9", "min 0.9 strict "},
		{failure, "result[0] > 1 && result[0] < 2", no},
		{failure, "result == 1", no},
		{failure, "result != 1", no},
	} {
		l, understood := test.read(test.condition)
		got := l.String()
		if !understood {
			got = no
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.condition, got, test.want)
		}
	}
}
