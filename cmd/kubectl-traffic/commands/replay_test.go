// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/config/golden"
)

const page = "../../../docs/replay.md"

// block is a fenced block with its name in the line above: a file, or a command
// whose output it is.
var block = regexp.MustCompile("(?m)^`([^`]+)`\n\n```(?:json|yaml)\n((?:.*\n)*?)```$")

// The page's example is played as it stands there.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filesOf(t, string(content)))
	commands := 0
	played := block.ReplaceAllStringFunc(string(content), func(found string) string {
		parts := block.FindStringSubmatch(found)
		args, isCommand := strings.CutPrefix(parts[1], "kubectl traffic ")
		if !isCommand {
			return found
		}
		commands++
		var out, errs bytes.Buffer
		if status := Run(t.Context(), strings.Fields(args), nil, &out, &errs); status != cli.ExitDone {
			t.Errorf("%s: exit status %d: %s", parts[1], status, errs.String())
		}
		return fmt.Sprintf("`%s`\n\n```json\n%s```", parts[1], out.String())
	})
	if commands == 0 {
		t.Fatal("the page has no example")
	}
	if *golden.Update {
		t.Chdir(sourceFolder)
		if err := os.WriteFile(page, []byte(played), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(content), played); diff != "" {
		t.Errorf("%s (-page +played); write it anew with -update:\n%s", page, diff)
	}
}

var sourceFolder, _ = os.Getwd()

// filesOf writes the files of the page into a folder of their own.
func filesOf(t *testing.T, content string) string {
	t.Helper()
	folder := t.TempDir()
	for _, parts := range block.FindAllStringSubmatch(content, -1) {
		if !strings.Contains(parts[1], " ") {
			writeFile(t, filepath.Join(folder, parts[1]), parts[2])
		}
	}
	return folder
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const okLine = `{"t": 5, "seconds": 5, "weight": 20, "canary": {"requests": 10, "failures": 0}, "stable": {"requests": 40, "failures": 0}}` + "\n"

func TestReplay(t *testing.T) {
	folder := t.TempDir()
	good, bad, rollout := filepath.Join(folder, "good.jsonl"), filepath.Join(folder, "bad.jsonl"), filepath.Join(folder, "rollout.yaml")
	writeFile(t, good, okLine)
	writeFile(t, bad, okLine+"{}\n")
	writeFile(t, rollout, "apiVersion: serin.dev/v1alpha1\nkind: Rollout\nspec: {service: shop, strategy: {steps: [{weight: 20}]}}\n")
	for _, tt := range []struct {
		name   string
		args   []string
		in     string
		status int
		out    string // a part of it
		errs   string // a part of it
	}{
		{"a recording", []string{good}, "", cli.ExitDone, `{"t":5,"rollback":`, ""},
		{"the standard input", []string{"-"}, okLine, cli.ExitDone, `{"t":5,"rollback":`, ""},
		{"a Rollout", []string{"-f", rollout, good}, "", cli.ExitDone, `"action":"Hold"`, ""},
		{"a Rollout on the standard input", []string{"-f", "-", good}, "apiVersion: serin.dev/v1alpha1\nkind: Rollout\nspec: {service: shop}\n", cli.ExitDone, `{"t":5`, ""},
		{"what can't be replayed", []string{"-f", "-", good}, "apiVersion: serin.dev/v1alpha1\nkind: Rollout\nspec: {service: shop, analysis: {templateRefs: [{name: errors}]}}\n", cli.ExitDone, `{"t":5`, "note: spec.analysis.metrics and templateRefs are left out"},
		{"a malformed line", []string{bad}, "", cli.ExitError, "", bad + ": line 2: t: missing"},
		{"a malformed Rollout", []string{"-f", good, good}, "", cli.ExitError, "", good + ": no Rollout"},
		{"a step that the Rollout does not have", []string{"-f", rollout, "-"}, strings.Replace(okLine, `"t"`, `"step": 3, "t"`, 1), cli.ExitError, "", "-: line 1: step: 3"},
		{"no such file", []string{filepath.Join(folder, "none")}, "", cli.ExitError, "", "no such file"},
		{"no recording", nil, "", cli.ExitUsage, "", "accepts 1 arg"},
		{"two recordings", []string{good, good}, "", cli.ExitUsage, "", "accepts 1 arg"},
		{"an unknown flag", []string{"--fast", good}, "", cli.ExitUsage, "", "unknown flag: --fast"},
		{"two files from the standard input", []string{"-f", "-", "-"}, "", cli.ExitUsage, "", "can't both be"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := Run(t.Context(), append([]string{"rollout", "replay"}, tt.args...), strings.NewReader(tt.in), &out, &errs)
			if status != tt.status || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
				t.Errorf("exit status %d, output %q, errors %q", status, out.String(), errs.String())
			}
			if status != cli.ExitDone && out.Len() > 0 {
				t.Errorf("something was printed before the error: %q", out.String())
			}
		})
	}
}

func TestUnknownCommandsAreErrorsOfUsage(t *testing.T) {
	for _, args := range [][]string{{"bogus"}, {"rollout", "bogus"}, {"--bogus"}} {
		var out, errs bytes.Buffer
		if status := Run(t.Context(), args, nil, &out, &errs); status != cli.ExitUsage || out.Len() > 0 {
			t.Errorf("%v: exit status %d, output %q", args, status, out.String())
		}
	}
	for _, args := range [][]string{{}, {"rollout"}, {"rollout", "replay", "--help"}} {
		var out, errs bytes.Buffer
		if status := Run(t.Context(), args, nil, &out, &errs); status != cli.ExitDone || !strings.Contains(out.String(), "kubectl traffic") {
			t.Errorf("%v: exit status %d, output %q", args, status, out.String())
		}
	}
}
