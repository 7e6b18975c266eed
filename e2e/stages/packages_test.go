// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesAreTestedByTheStageThatTheirCodeNeeds(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{
		"go.mod":                     file("module x"),
		"docs_test.go":               file("package x"),
		"judge/judge.go":             file("package judge"),
		"judge/judge_test.go":        file("package judge\nimport \"sync\"\nvar m sync.Mutex\nfunc FuzzWindow(f *testing.F) {}"),
		"proxy/agent.go":             file("package proxy\nfunc f() { go f() }"),
		"proxy/agent_test.go":        file("package proxy"),
		"collect/collect.go":         file("package collect\nimport \"sync\"\nvar m sync.Mutex"),
		"collect/collect_test.go":    file("package collect"),
		"untested/untested.go":       file("package untested"),
		"judge/testdata/x_test.go":   file("package broken {"),
		".cache/clone/x_test.go":     file("package broken {"),
		"bench/go.mod":               file("module x/bench"),
		"bench/sim/sim.go":           file("package sim\nfunc f() { go f() }"),
		"bench/sim/sim_test.go":      file("package sim\nfunc FuzzTraffic(f *testing.F) {}"),
		"bench/rivals/rule_test.go":  file("package rivals"),
		"e2e/go.mod":                 file("module x/e2e"),
		"e2e/scenario_test.go":       file("package e2e"),
		"e2e/cluster/up_test.go":     file("package cluster"),
		"e2e/tools/helm/go.mod":      file("module helm"),
		"e2e/tools/helm/up_test.go":  file("package main"),
		"e2e/tools/build_test.go":    file("package tools"),
		"e2e/testdata/probe/main.go": file("package main"),
	}
	got, err := FindPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	want := Packages{
		Operator:    Module{Pure: []string{"./judge"}, Concurrent: []string{"./collect", "./proxy"}},
		Bench:       Module{Pure: []string{"./rivals"}, Concurrent: []string{"./sim"}},
		Integration: []string{"./cluster", "./tools"},
		FuzzTargets: []FuzzTarget{{Package: "./judge", Name: "FuzzWindow"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestASourceThatDoesNotParseIsAnError(t *testing.T) {
	root := fstest.MapFS{"judge/judge_test.go": &fstest.MapFile{Data: []byte("package {")}}
	if _, err := FindPackages(root); err == nil {
		t.Error("no error")
	}
}

// The table is checked against this repository: what it finds here is what make test runs.
// The program that runs Helm has a test that a program with C, as the race detector needs it, can't pass.
func TestTheDecisionsOfThisRepositoryAreCachedAndItsProxyIsNot(t *testing.T) {
	got, err := FindPackages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"./controllers/release", "./controllers/trafficsplit/plan", "./controllers/release/helmrelease", "./analysis/judge", "./traffic/gatewayapi", "./cmd/serin-helm"} {
		if !slices.Contains(got.Operator.Pure, name) {
			t.Errorf("%s is not among the pure packages %v", name, got.Operator.Pure)
		}
	}
	for _, name := range []string{"./proxy/agent", "./controllers/trafficsplit", "./metricsapi/inventory"} {
		if !slices.Contains(got.Operator.Concurrent, name) {
			t.Errorf("%s is not among the concurrent packages %v", name, got.Operator.Concurrent)
		}
	}
	if !slices.Contains(got.Bench.Pure, "./sim/rivals") || !slices.Contains(got.Bench.Concurrent, "./sim") {
		t.Errorf("benchmarks: %v", got.Bench)
	}
	if !slices.Contains(got.Integration, "./integration") || !slices.Contains(got.FuzzTargets, FuzzTarget{"./traffic/nginx/conf", "FuzzRender"}) {
		t.Errorf("integration: %v, fuzz targets: %v", got.Integration, got.FuzzTargets)
	}
}
