// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// sums is a package with a test, in a module of its own.
var sums = map[string]string{
	"go.mod": "module example.com/sums\n\ngo 1.26\n",
	"sum/sum.go": `package sum

import "time"

var pause = time.Duration(0)

// Capped is the sum, at most most.
func Capped(a, b, most int) int {
	time.Sleep(pause)
	if a+b > most {
		return most
	}
	return a + b
}

type Counter int

func (c *Counter) Add(n int) { *c += Counter(n) }
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestCappedIsAtMostMost(t *testing.T) {
	if got := Capped(2, 3, 4); got != 4 {
		t.Errorf("got %d", got)
	}
}

func TestSlow(t *testing.T) {
	if got := Capped(2, 2, 9); got != 4 {
		t.Errorf("got %d", got)
	}
}
`,
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEachMutantHasItsOutcome(t *testing.T) {
	root := write(t, sums)
	list := List{
		Package: "sum",
		Tests:   [][]string{{"-test.skip=Slow"}, {"-test.run=Slow"}},
		Mutants: []Mutant{
			{Func: "Capped", Before: "return most", After: "return a + b", Why: "killed by a test"},
			{Func: "Capped", Before: "return a + b", After: "return a * b * b", Why: "killed by the second run"},
			{Func: "Capped", Before: "return most", After: "panic(most)", Why: "killed by a panic"},
			{Func: "Capped", Before: "a+b > most", After: "a+b >= most", Why: "survives"},
			{Func: "Capped", Before: "time.Sleep(pause)", After: "time.Sleep(time.Hour)", Why: "times out"},
			{Func: "Capped", Before: "a-b", After: "a+b", Why: "no longer applies"},
			{Func: "Capped", Before: "return most", After: "return least", Why: "does not compile"},
			{Func: "Counter.Add", Before: "*c +=", After: "*c -=", Why: "survives in a method"},
			{Func: "Capped", Before: "time.Sleep(pause)", After: "time.Sleep(pause); os_exit()", Why: "does not compile either"},
		},
	}
	want := []Outcome{Killed, Killed, Killed, Survived, TimedOut, DoesNotApply, DoesNotCompile, Survived, DoesNotCompile}
	options := Options{Root: root, Limit: 10 * time.Second, Clock: clock.RealClock{}}
	binary, broken, err := options.build(t.Context(), list, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list.Mutants {
		got, found := broken[i+1]
		if !found {
			got = options.try(t.Context(), list, binary, i+1)
		}
		if got.Outcome != want[i] {
			t.Errorf("%s: %s (%s), want %s", m.Why, got.Outcome, got.Detail, want[i])
		}
	}
	content, err := os.ReadFile(filepath.Join(root, "sum/sum.go"))
	if err != nil || string(content) != sums["sum/sum.go"] {
		t.Errorf("the work tree was changed (%v):\n%s", err, content)
	}
}

func TestARunFailsUnlessAllMutantsAreKilled(t *testing.T) {
	root := write(t, sums)
	killed := Mutant{Func: "Capped", Before: "return most", After: "return a + b", Why: "the cap"}
	survivor := Mutant{Func: "Capped", Before: "a+b > most", After: "a+b >= most", Why: "the edge"}
	gone := Mutant{Func: "Capped", Before: "least", After: "most", Why: "gone"}
	for _, test := range []struct {
		name    string
		mutants []Mutant
		says    string
		fails   bool
	}{
		{"all are killed", []Mutant{killed}, "1 mutants, 1 killed, 0 survived, 0 not judged", false},
		{"one survives", []Mutant{killed, survivor}, "2 mutants, 1 killed, 1 survived, 0 not judged", true},
		{"one no longer applies", []Mutant{killed, gone}, "2 mutants, 1 killed, 0 survived, 1 not judged", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Run(t.Context(), &out, Options{Root: root, Limit: time.Minute, Clock: clock.RealClock{}}, []List{{Package: "sum", Mutants: test.mutants}})
			if (err != nil) != test.fails || !strings.Contains(out.String(), test.says) {
				t.Errorf("error %v, and it says:\n%s", err, &out)
			}
		})
	}
}

func TestAPackageWhoseTestsFailUnchangedIsNotMutated(t *testing.T) {
	files := map[string]string{"go.mod": sums["go.mod"], "sum/sum.go": sums["sum/sum.go"]}
	files["sum/sum_test.go"] = strings.Replace(sums["sum/sum_test.go"], "got != 4", "got != 5", 1)
	var out bytes.Buffer
	err := Run(t.Context(), &out, Options{Root: write(t, files), Limit: time.Minute, Clock: clock.RealClock{}}, []List{{
		Package: "sum", Mutants: []Mutant{{Func: "Capped", Before: "return most", After: "return a", Why: "the cap"}},
	}})
	if err == nil || !strings.Contains(err.Error(), "must pass before anything is changed") {
		t.Errorf("got %v", err)
	}
}

func TestAnInterruptedRunIsNotASuccess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := Run(ctx, &out, Options{Root: write(t, sums), Limit: time.Minute, Clock: clock.RealClock{}}, []List{{Package: "sum"}}); err == nil {
		t.Errorf("no error:\n%s", &out)
	}
}

func TestListsThatSayTooLittleAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"no package":        "mutants:\n- {func: F, before: a, after: b, why: c}\n",
		"no mutants":        "package: sum\n",
		"no reason":         "package: sum\nmutants:\n- {func: F, before: a, after: b}\n",
		"no change":         "package: sum\nmutants:\n- {func: F, before: a, after: a, why: c}\n",
		"nothing to change": "package: sum\nmutants:\n- {func: F, after: a, why: c}\n",
		"an unknown field":  "package: sum\nmutants:\n- {func: F, before: a, after: b, why: c, when: d}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(write(t, map[string]string{"list.yaml": content})); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder without lists is no error")
	}
}

// A list that does not follow the code is noticed without a compiler, and so is a mutant that is no code.
func TestEveryMutantOfTheListsAppliesToTheCode(t *testing.T) {
	lists, err := Load("lists")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		functions, err := functionsOf(filepath.Join("..", "..", list.Package))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Mutants {
			f, body, err := m.apply(functions)
			if err == nil {
				_, err = parser.ParseFile(token.NewFileSet(), f.file, f.content[:f.begin]+body+f.content[f.end:], parser.SkipObjectResolution)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", list.Package, m.Why, err)
			}
		}
	}
}
