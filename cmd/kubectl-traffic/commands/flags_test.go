// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func TestFlagsOfGet(t *testing.T) {
	for _, line := range []string{"--until=later", "--timeout=1m", "--watch -o json", "-o wide"} {
		var out bytes.Buffer
		if got := Run(t.Context(), append([]string{"rollout", "get", "website"}, strings.Fields(line)...), nil, &out, &out); got != cli.ExitUsage {
			t.Errorf("%s: exit status %d: %s", line, got, out.String())
		}
	}
}

func TestFlagsOfTheCanaryCommands(t *testing.T) {
	for _, line := range []string{
		"adopt", "adopt a b", "adopt a -o wide", "adopt a --dry-run=maybe", "adopt a --wait=soon", "adopt a --wait=-1m", "adopt a --wait --dry-run=server",
		"deprecate", "deprecate a --wait=1m --dry-run=client", "list a", "list -o dot",
	} {
		var out bytes.Buffer
		if got := Run(t.Context(), append([]string{"canary"}, strings.Fields(line)...), nil, &out, &out); got != cli.ExitUsage {
			t.Errorf("%s: exit status %d: %s", line, got, out.String())
		}
	}
}
