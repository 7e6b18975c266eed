// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestKey(t *testing.T) {
	base := fstest.MapFS{
		"go.mod":  {Data: []byte("module a")},
		"main.go": {Data: []byte("package main")},
	}
	with := func(name, content string) fstest.MapFS {
		changed := fstest.MapFS{name: {Data: []byte(content)}}
		for path, file := range base {
			if path != name {
				changed[path] = file
			}
		}
		return changed
	}
	tool := Tool{Name: "a", Package: ".", Programs: []string{"a"}}
	want, err := Key(tool, base, "go1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		tool      Tool
		folder    fstest.MapFS
		toolchain string
		same      bool
	}{
		{name: "the same input gives the same key", tool: tool, folder: base, toolchain: "go1", same: true},
		{name: "a page of documentation has no part in it", tool: tool, folder: with("README.md", "x"), toolchain: "go1", same: true},
		{name: "a test has no part in it", tool: tool, folder: with("main_test.go", "x"), toolchain: "go1", same: true},
		{name: "another version of a module gives another key", tool: tool, folder: with("go.mod", "module b"), toolchain: "go1"},
		{name: "other source gives another key", tool: tool, folder: with("main.go", "package other"), toolchain: "go1"},
		{name: "another toolchain gives another key", tool: tool, folder: base, toolchain: "go2"},
		{name: "other flags give another key", tool: Tool{Name: "a", Package: ".", Programs: []string{"a"}, Defines: []string{"x=y"}}, folder: base, toolchain: "go1"},
		{name: "leaving something out gives another key", tool: Tool{Name: "a", Package: ".", Programs: []string{"a"}, Without: &Omission{Module: "b", Folder: "c"}}, folder: base, toolchain: "go1"},
		{name: "another name of the program gives another key", tool: Tool{Name: "a", Package: ".", Programs: []string{"b"}}, folder: base, toolchain: "go1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Key(test.tool, test.folder, test.toolchain)
			if err != nil {
				t.Fatal(err)
			}
			if (got == want) != test.same {
				t.Errorf("key %s, first key %s, want equal: %t", got, want, test.same)
			}
		})
	}
}

func TestVersionsAreThoseOfTheModules(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"Kubernetes reports what its module requires", "kubernetes/go.mod", "k8s.io/kubernetes " + KubernetesVersion},
		{"Traefik reports what its module requires", "traefik/go.mod", "github.com/traefik/traefik/v3 " + TraefikVersion},
	} {
		t.Run(test.name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.FromSlash(test.file))
			if err != nil {
				t.Fatal(err)
			}
			requires := func(line string) bool { return strings.HasSuffix(strings.TrimSuffix(line, " // indirect"), test.want) }
			if !slices.ContainsFunc(strings.Split(string(content), "\n"), requires) {
				t.Errorf("%s does not require %q", test.file, test.want)
			}
		})
	}
}

func TestProgressTellsPackagesFromModulesAndProblems(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	var out bytes.Buffer
	p := newProgress("tool", &out, clk)
	defer p.stop()
	write := func(text string) {
		if _, err := p.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("go: downloading example.org/a v1.0.0\ngo: downloading exam")
	if got, want := p.state.String(), "downloaded 1 modules"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
	write("ple.org/b v1.0.0\n")
	p.compiling(3)
	write("example.org/a\nexample.org/b\n# example.org/c\nc.go:1:2: undefined: x\n")
	if got, want := p.state.String(), "compiled 2 of 3 packages"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
	if got := p.problems(); !strings.Contains(got, "undefined: x") || strings.Contains(got, "example.org/a\n") {
		t.Errorf("problems %q, want the compiler's only", got)
	}
	write("example.org/c\n")
	if got, want := p.state.String(), "linking, 3 packages compiled"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
}

func TestProgressIsShownAsPlainLinesWhereThereIsNoTerminal(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	out := &lockedBuffer{}
	p := newProgress("tool", out, clk)
	p.compiling(10)
	clk.Step(plainPeriod)
	shown := func(context.Context) (bool, error) { return len(out.lines()) > 1, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, shown); err != nil {
		t.Fatal("the state was not shown")
	}
	p.stop()
	want := []string{"tool: building, 10 packages to compile, 0s", "tool: compiled 0 of 10 packages, 15s"}
	if got := out.lines(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buffer.String()), "\n")
}

func TestALockIsHeldByOneAndSurvivesTheRemovalOfItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "lock")
	release, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	waited := false
	_, err = Lock(ended, path, func() { waited = true; cancel() })
	if !errors.Is(err, context.Canceled) || !waited {
		t.Errorf("a second lock: %v, waited %t; want to wait until the context ends", err, waited)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	release()
	again, err := Lock(t.Context(), path, func() { t.Error("the lock was not released") })
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// makeTool writes a module with one program that prints its own name.
func makeTool(t *testing.T, source string) (*Builder, Tool) {
	t.Helper()
	folder := t.TempDir()
	module := filepath.Join(folder, "hello")
	for name, content := range map[string]string{"go.mod": "module hello\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.MkdirAll(module, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	builder := &Builder{Source: folder, Cache: filepath.Join(folder, "cache"), Out: &lockedBuffer{}, Clock: clock.RealClock{}}
	return builder, Tool{Name: "hello", Package: ".", Programs: []string{"hello", "other"}}
}

func TestABuiltToolIsOfferedUnderAllItsNamesAndNotBuiltAgain(t *testing.T) {
	builder, tool := makeTool(t, "package main\n\nfunc main() {}\n")
	first, err := builder.Build(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range tool.Programs {
		if info, err := os.Stat(first.Path(program)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, want a program", first.Path(program), err)
		}
	}
	if first.Path("missing") != "" {
		t.Errorf("a program that is not in the set has the path %q", first.Path("missing"))
	}
	builder.Out = &lockedBuffer{}
	second, err := builder.Build(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	if second.Path("hello") != first.Path("hello") {
		t.Errorf("built at %s, then at %s", first.Path("hello"), second.Path("hello"))
	}
	if said := builder.Out.(*lockedBuffer).buffer.String(); said != "" {
		t.Errorf("it was built again: %s", said)
	}
}

func TestABuildThatFailsShowsWhyAndLeavesNothing(t *testing.T) {
	builder, tool := makeTool(t, "package main\n\nfunc main() { undefinedName() }\n")
	_, err := builder.Build(t.Context(), tool)
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("error %v, want the compiler's words", err)
	}
	left, err := filepath.Glob(filepath.Join(builder.Cache, "hello-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestBuildsAtTheSameTimeDoNotDisturbEachOther(t *testing.T) {
	builder, tool := makeTool(t, "package main\n\nfunc main() {}\n")
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			set, err := builder.Build(t.Context(), tool)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(set.Path("hello")); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if got := strings.Count(builder.Out.(*lockedBuffer).buffer.String(), ": built,"); got != 1 {
		t.Errorf("built %d times, want once", got)
	}
}

func TestTheRepositoryIsFoundFromAnyFolderInIt(t *testing.T) {
	inside, err := Locate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(inside.Root, "e2e", "tools", "tool.go")); err != nil {
		t.Errorf("the root is said to be %s: %v", inside.Root, err)
	}
	if _, err := findRoot(t.TempDir()); err == nil {
		t.Error("a folder outside of the repository was taken for one inside")
	}
}

func TestTheCacheIsTheUsersAndTheStateIsTheCheckouts(t *testing.T) {
	user, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", user) // on Linux
	t.Setenv("HOME", user)           // on macOS
	t.Setenv(CacheVariable, "")
	checkout, err := Locate()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(checkout.Cache, user) || filepath.Base(checkout.Cache) != "serin" {
		t.Errorf("the cache is %s, want a folder serin below %s", checkout.Cache, user)
	}
	t.Setenv(CacheVariable, elsewhere)
	named, err := Locate()
	if err != nil || named.Cache != elsewhere {
		t.Errorf("the cache is %s (%v), want %s", named.Cache, err, elsewhere)
	}
	if want := filepath.Join(checkout.Root, ".cache"); checkout.State != want || named.State != want {
		t.Errorf("the state is in %s and %s, want %s", checkout.State, named.State, want)
	}
	t.Setenv(CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Locate(); err == nil || !strings.Contains(err.Error(), CacheVariable) {
		t.Errorf("without any folder for caches: %v, want an error that names %s", err, CacheVariable)
	}
}

func TestAProgramOfTheRepositoryIsLinkedOnceUntilItChanges(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "cmd"), 0o750); err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module example.com/a\n")
	checkout := Checkout{Root: root, State: t.TempDir()}
	build := func(printed string) string {
		t.Helper()
		write("cmd/main.go", "package main\n\nfunc main() { println("+fmt.Sprintf("%q", printed)+") }\n")
		program, err := checkout.Program(t.Context(), "cmd")
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(program)
		if err != nil || !bytes.Contains(content, []byte(printed)) {
			t.Errorf("the program does not print %q: %v", printed, err)
		}
		return program
	}
	program := build("one apple")
	// A link would write the byte that follows the program away.
	file, err := os.OpenFile(program, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	before, err := file.Stat()
	if _, written := file.WriteString("!"); err != nil || errors.Join(written, file.Close()) != nil {
		t.Fatal(err, written)
	}
	build("one apple")
	if after, err := os.Stat(program); err != nil || after.Size() != before.Size()+1 {
		t.Errorf("linked again though nothing has changed: %v", err)
	}
	build("two pears")

	write("cmd/main.go", "package main\n\nfunc main() { undefined() }\n")
	if _, err := checkout.Program(t.Context(), "cmd"); err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("the error is %v, want what the compiler says", err)
	}
}
