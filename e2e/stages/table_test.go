// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the stage race leaves out, the stage unit runs. A name that is in no package would run nowhere.
func TestScenariosRunWithoutTheRaceDetector(t *testing.T) {
	root := os.DirFS("../..")
	p, err := FindPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(scenarios, "^()$"), "|") {
		if in := packagesWith(t, root, p.Operator.Concurrent, name); len(in) == 0 || !isSubset(in, withScenarios) {
			t.Errorf("%s is in %v; the stage unit looks for it in %v", name, in, withScenarios)
		}
	}
	runs := map[string]int{}
	for _, stage := range Tests(p) {
		for _, step := range stage.Steps {
			for _, flag := range []string{"-run", "-skip"} {
				if i := slices.Index(step.Args, flag); i >= 0 && step.Args[i+1] == scenarios {
					runs[fmt.Sprintf("%s %s, race %t", stage.Name, flag, step.Race)]++
				}
			}
		}
	}
	if len(runs) != 2 || runs["unit -run, race false"] != 1 || runs["race -skip, race true"] != 1 {
		t.Errorf("they are in %v", runs)
	}
}

// What the stage race leaves out runs in the stage unit, and in make soak with the race detector.
func TestPackagesThatPutProgramsTogetherRunOnceAndInSoakForRaces(t *testing.T) {
	p, err := FindPackages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range wired {
		in := map[string]int{}
		for _, stage := range slices.Concat(Tests(p), Soak(p)) {
			for _, step := range stage.Steps {
				if slices.Contains(step.Args, name) && !slices.Contains(step.Args, "-bench") {
					in[fmt.Sprintf("%s, race %t", stage.Name, step.Race)]++
				}
			}
		}
		if want := map[string]int{"unit, race false": 1, "soak-race, race true": 1}; !maps.Equal(in, want) {
			t.Errorf("%s is in %v", name, in)
		}
	}
}

// packagesWith are the packages that have a test of a name.
func packagesWith(t *testing.T, root fs.FS, packages []string, name string) (found []string) {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, p := range packages {
		files, err := fs.Glob(root, path.Join(path.Clean(p), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(files, func(file string) bool {
			text, err := fs.ReadFile(root, file)
			return err == nil && declaration.Match(text)
		}) {
			found = append(found, p)
		}
	}
	return found
}

func isSubset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

func TestTheLongestPackagesBeginFirst(t *testing.T) {
	p, err := FindPackages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, packages := range []struct{ all, longest []string }{{p.Operator.Concurrent, longest}, {p.Integration, longestOfCluster}} {
		got := longestFirst(packages.all, packages.longest)
		if first := got[:len(packages.longest)]; !slices.Equal(first, packages.longest) {
			t.Errorf("the first are %v, want %v", first, packages.longest)
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), packages.all) {
			t.Errorf("%v are not the packages %v", got, packages.all)
		}
	}
}

// They change which control plane the others would talk to, or what it serves, and run once.
func TestTestsThatChangeTheControlPlaneRunAlone(t *testing.T) {
	root := os.DirFS("..")
	files, err := fs.Glob(root, "integration/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?s)\nfunc (Test\w+)\(t \*testing\.T\) \{(.*?)\n\}`)
	var found []string
	for _, file := range files {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range function.FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`\b(otherPlane|elsewhere|installTraffic)\(t\)`).MatchString(f[2]) {
				found = append(found, f[1])
			}
		}
	}
	slices.Sort(found)
	names := strings.Split(strings.Trim(alone, "^()$"), "|")
	slices.Sort(names)
	if !slices.Equal(found, names) {
		t.Errorf("they are %q, and the stage integration runs %q alone", found, names)
	}
}

// A single process would run beside each other what must not, and what it finds unused depends on which tests it runs.
func TestSoakRunsTheStepsOfTheStageIntegration(t *testing.T) {
	p := Packages{Integration: []string{"./bench", "./cluster", "./integration"}}
	once, _ := Find(Tests(p), "integration")
	again, _ := Find(Soak(p), "soak-race")
	var want, got []string
	for _, step := range once[0].Steps {
		want = append(want, strings.Join(step.Args, " "))
	}
	for _, step := range again[0].Steps {
		if !step.Race || !slices.Contains(step.Args, "-race") || !slices.Contains(step.Args, "-shuffle=on") {
			t.Errorf("no race detector or no random order: %q", step.Args)
		}
		if step.Folder == clusterModule {
			got = append(got, strings.NewReplacer(" -race", "", " -shuffle=on", "", soakTimeout, testTimeout).Replace(strings.Join(step.Args, " ")))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the steps of soak-race (-integration +soak-race):\n%s", diff)
	}
}

func TestTheOldestKubernetesIsTheChartsOwn(t *testing.T) {
	chart, err := os.ReadFile("../../charts/serin/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nkubeVersion: \">=" + oldestKubernetes + ".0-0\"\n"; !strings.Contains(string(chart), want) {
		t.Errorf("the chart does not say %q", want)
	}
}
