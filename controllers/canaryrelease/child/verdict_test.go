// SPDX-License-Identifier: Apache-2.0

package child

import (
	"strings"
	"testing"
	"time"
)

func TestTheLimitThatEndedAProcessIsNamed(t *testing.T) {
	l := Limits{CPU: time.Second, Time: time.Minute, Memory: 160 << 20}
	for name, test := range map[string]struct {
		ending ending
		want   string
	}{
		"time":              {ending{late: true, killed: true}, "takes longer than its time limit of 1m0s"},
		"computing":         {ending{overTime: true}, "uses more CPU time than its limit of 1s"},
		"memory":            {ending{killed: true, exhausted: true}, "needs more memory than its limit of 160 MiB"},
		"memory of the pod": {ending{killed: true}, "the manager's pod ran out of memory"},
		"the caller":        {ending{stopped: true, killed: true}, "was interrupted"},
		"its turn":          {ending{recalled: true, stopped: true, killed: true}, "took longer than 10m0s, probably because of hooks, while another namespace waited"},
		"a failure":         {ending{}, "failed"},
	} {
		if err := verdict(test.ending, l); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if err := verdict(ending{ok: true}, l); err != nil {
		t.Errorf("a process that ended well: %v", err)
	}
}
