// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// shellBlock is a block of commands; its first group is what is in it.
	shellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|console)\n(.*?)^ *```$")
	anyBlock   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	// call is a command of the plugin within a line, up to what the shell does with its output.
	call = regexp.MustCompile(`kubectl traffic((?: +(?:[^\s'"|;&<>#)]|'[^']*'|"[^"]*")+)*)`)
	word = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)
)

// A command of a page can be typed as it stands: it is there, and takes these flags and arguments. In a sentence, a
// command may be without its arguments.
func TestCommandsOfTheDocumentsAreAccepted(t *testing.T) {
	typed := 0
	for _, file := range documents(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for _, c := range call.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", " "), -1) {
				typed++
				if err := accepted(words(c[1]), true); err != nil {
					t.Errorf("%s: %s: %v", file, c[0], err)
				}
			}
		}
		for _, code := range codeSpan.FindAllStringSubmatch(anyBlock.ReplaceAllString(text, ""), -1) {
			for _, c := range call.FindAllStringSubmatch(strings.Join(strings.Fields(code[1]), " "), -1) {
				if err := accepted(words(c[1]), false); err != nil {
					t.Errorf("%s: %s: %v", file, c[0], err)
				}
			}
		}
	}
	if typed < 50 {
		t.Errorf("%d commands were found", typed)
	}
}

func TestWhatTheCommandsDoNotTakeIsFound(t *testing.T) {
	for line, want := range map[string]string{
		"rollout explain website -n shop":      "",
		"rollout exlpain website":              "unknown command",
		"rollout promote website --fully":      "unknown flag",
		"rollout promote":                      "accepts 1 arg",
		"rollout undo website --to-revision=1": "",
		"rollout status website --timeout=1x":  "invalid argument",
	} {
		err := accepted(words(line), true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// accepted is whether the plugin takes a line of words, and with whole, whether nothing is missing.
func accepted(line []string, whole bool) error {
	if len(line) > 0 && line[0] == cobra.ShellCompRequestCmd {
		return nil // of cobra, for completion
	}
	cmd, rest, err := NewRoot().Find(line)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if cmd.HasSubCommands() {
		return cobra.NoArgs(cmd, args)
	}
	if !whole && len(args) == 0 {
		return nil
	}
	return cmd.ValidateArgs(args)
}

func words(line string) []string {
	all := word.FindAllString(line, -1)
	for i, w := range all {
		all[i] = strings.NewReplacer("'", "", `"`, "").Replace(w)
	}
	return all
}

// documents are the pages of users, but for those that list the commands.
func documents(t *testing.T) (files []string) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	for _, folder := range []string{"docs", "examples", "charts"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(file) == ".md" && !strings.HasPrefix(filepath.Base(file), "kubectl_traffic") {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
}
