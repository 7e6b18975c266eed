// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// execute runs a program that has no subcommand of its own.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := Complete(&cobra.Command{Use: "serin"})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersionNamesTheProgram(t *testing.T) {
	out, err := execute(t, "version")
	if err != nil || !strings.HasPrefix(out, "serin ") {
		t.Errorf("got %q %v", out, err)
	}
}

func TestEverySubcommandRefusesWrongFlagsOfTheLog(t *testing.T) {
	for args, want := range map[string]string{"--log-level=loud": "--log-level", "--log-format=xml": "--log-format"} {
		if _, err := execute(t, "version", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", args, err, want)
		}
	}
}
