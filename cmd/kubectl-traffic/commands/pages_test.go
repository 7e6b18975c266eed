// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/config/golden"
)

const pagesFolder = "../../../docs/kubectl-traffic"

func TestThePagesSayWhatTheCommandsSay(t *testing.T) {
	want, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckDocs(t, pagesFolder, "kubectl_traffic*.md", want)
}

// Each command can be understood from its help alone.
func TestEveryCommandHasAnExampleThatCallsIt(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			check(child)
		}
		if cmd.HasSubCommands() || cmd.Name() == "version" {
			return
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()+" ") && !strings.HasSuffix(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", cmd.CommandPath(), cmd.Example)
		}
	}
	check(NewRoot())
}

func TestEveryFlagOfACommandIsCompletedOrSwitched(t *testing.T) {
	var out strings.Builder
	for line, want := range map[string]string{
		"top ":                      "deployments",
		"top pods --sort-by ":       "failures",
		"topology pods -o ":         "dot",
		"update x --dry-run ":       "server",
		"rollout ":                  "promote",
		"rollout get x --until ":    "ready",
		"rollout promote x --dry-r": "--dry-run",
		"canary ":                   "deprecate",
		"canary list -o ":           "wide",
		"canary adopt x --dry-run ": "client",
		"canary adopt x --w":        "--wait",
	} {
		out.Reset()
		words := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			words = append(words, "")
		}
		if status := Run(t.Context(), append([]string{"__complete"}, words...), nil, &out, &out); status != cli.ExitDone || !strings.Contains(out.String(), want) {
			t.Errorf("%q: exit status %d, proposed %q, want %q", line, status, out.String(), want)
		}
	}
}
