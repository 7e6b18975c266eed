// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// variable of the environment that says which mutant a test binary is to be. Mutants
// count from 1; 0 is the code as it is.
const variable = "SERIN_MUTANT"

// selector is the file that is added to a package.
const selector = `package %s

import "os"

var mutantUnderTest = os.Getenv("` + variable + `")
`

// inserted is a mutant in front of the body of its function:
//
//	func f() { if mutantUnderTest == "7" { changed body }; body }
type inserted struct {
	number int
	function
	changed string
}

func (i inserted) text() string {
	end := ""
	if !i.returns {
		end = "return\n"
	}
	// The compiler names the mutant in its errors by the line directive.
	return fmt.Sprintf("\nif mutantUnderTest == \"%d\" {\n//line mutant-%d:1\n%s\n%s}\n//line %s:%d\n", i.number, i.number, i.changed, end, i.file, i.line)
}

// blamed matches a mutant in an error of the compiler.
var blamed = regexp.MustCompile(`mutant-(\d+):\d+.*`)

// build makes one test binary that can be any mutant of a list, since compiling and
// linking take longer than most tests. Those that can't be built have a Result.
func (o Options) build(ctx context.Context, list List, temporary string) (binary string, broken map[int]Result, err error) {
	folder := filepath.Join(o.Root, list.Package)
	functions, err := functionsOf(folder)
	if err != nil {
		return "", nil, err
	}
	broken = map[int]Result{}
	var all []inserted
	for i, m := range list.Mutants {
		f, changed, err := m.apply(functions)
		if err != nil {
			broken[i+1] = Result{Outcome: DoesNotApply, Detail: err.Error()}
			continue
		}
		all = append(all, inserted{i + 1, f, changed})
	}
	binary = filepath.Join(temporary, "package.test")
	for {
		output, err := o.compile(ctx, list.Package, binary, temporary, all)
		if err == nil {
			return binary, broken, nil
		}
		found := blamed.FindAllStringSubmatch(output, -1)
		if len(found) == 0 {
			return "", nil, fmt.Errorf("%s does not compile: %w\n%s", list.Package, err, output)
		}
		for _, match := range found {
			number, _ := strconv.Atoi(match[1]) // it matched digits
			broken[number] = Result{Outcome: DoesNotCompile, Detail: match[0]}
		}
		all = slices.DeleteFunc(all, func(i inserted) bool { _, found := broken[i.number]; return found })
	}
}

// compile writes the changed files and the overlay that names them, and compiles.
func (o Options) compile(ctx context.Context, folder, binary, temporary string, all []inserted) (output string, err error) {
	files := map[string]string{}
	slices.SortStableFunc(all, func(a, b inserted) int { return cmp.Compare(b.begin, a.begin) }) // the end of a file first
	name := filepath.Base(folder)
	for _, i := range all {
		content, found := files[i.file]
		if !found {
			content = i.content
		}
		files[i.file] = content[:i.begin] + i.text() + content[i.begin:]
		name = packageName.FindStringSubmatch(i.content)[1]
	}
	files[filepath.Join(o.Root, folder, "zz_mutant_under_test.go")] = fmt.Sprintf(selector, name)
	overlay := map[string]map[string]string{"Replace": {}}
	for file, content := range files {
		replacement := filepath.Join(temporary, filepath.Base(file))
		if err := os.WriteFile(replacement, []byte(content), 0o600); err != nil {
			return "", err
		}
		overlay["Replace"][file] = replacement
	}
	encoded, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list := filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(list, encoded, 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", list, "-o", binary, "./"+folder)
	command.Dir = o.Root
	text, err := command.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

var packageName = regexp.MustCompile(`(?m)^package (\w+)`)
