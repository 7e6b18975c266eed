// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"cmp"
	"slices"
)

const (
	// the modules of the operator, of the benchmarks that simulate or compare, and of the cluster tests.
	operatorModule, benchModule, clusterModule = ".", "bench", "e2e"

	// together is how many packages of the cluster tests run at once: they wait more than they compute.
	together = "3"

	testTimeout = "30m"
	soakTimeout = "3h"
)

// Tests are the stages of make test, in the order in which they run.
func Tests(p Packages) []Stage {
	return []Stage{
		{Name: "packages", About: "Debian packages that the tests use", Steps: []Step{script("install packages", ".ci/packages.sh")}},
		{Name: "build", About: "Kubernetes, Helm, CoreDNS, kube-network-policies and Traefik, where the cache lacks them, beside the next stages", Background: true, Steps: []Step{
			{Name: "build the programs of the cluster", Folder: clusterModule, Args: []string{"nice", "-n", "10", "go", "run", "./cmd/cluster", "build"}},
		}},
		{Name: "check", About: "format, generated files, imports, go vet", Together: true, Steps: []Step{
			script("formatting", ".ci/check.sh", "formatting"),
			script("generated files", ".ci/check.sh", "generated"),
			script("the page of the dashboard", ".ci/check.sh", "page"),
			script("spelling and prose of the documents", ".ci/check.sh", "prose"),
			goTest(operatorModule, "."),
			{Name: "go vet of the operator", Folder: operatorModule, Args: []string{"go", "vet", "./..."}},
			{Name: "go vet of the benchmarks", Folder: benchModule, Args: []string{"go", "vet", "./..."}},
			{Name: "go vet of the cluster tests", Folder: clusterModule, Args: []string{"go", "vet", "./..."}},
		}},
		{Name: "unit", About: "packages that the race detector need not see, so that Go caches them", Steps: []Step{
			goTest(operatorModule, slices.Concat(p.Operator.Pure, wired)...), fresh(goTest(benchModule, p.Bench.Pure...)),
			insert(goTest(operatorModule, withScenarios...), "-run", scenarios),
		}},
		{Name: "race", About: "packages with goroutines, with the race detector", Steps: []Step{
			race(insert(goTest(operatorModule, longestFirst(without(p.Operator.Concurrent, wired), longest)...), "-skip", scenarios)), race(fresh(goTest(benchModule, p.Bench.Concurrent...))),
		}},
		{Name: "integration", About: "a real control plane, the local cluster, Helm", Needs: []string{"build"}, Together: true, Steps: integration(p)},
		{Name: "e2e", About: "scenarios on a real cluster, under traffic", Steps: []Step{verbose(fresh(goTest(clusterModule, "-skip", long, ".")))}},
	}
}

// integration are the steps of what needs a control plane or a node. In the package integration each has a
// process, and so a control plane, of its own.
func integration(p Packages) []Step {
	return []Step{
		fresh(goTest(clusterModule, append([]string{"-p", together, "-skip", otherTools + "|" + alone}, longestFirst(p.Integration, longestOfCluster)...)...)),
		fresh(goTest(clusterModule, "-run", alone, "./integration")),
		// Most clusters serve no MutatingAdmissionPolicy. Those that other tools moved from may
		// have two kinds of one name, so that kubectl needs the group of each.
		withArgs(fresh(goTest(clusterModule, "-run", "Webhook|"+otherTools, "./integration")), "-without-policies"),
	}
}

// scenarios are the tests that play whole lives of objects on an API in memory, each in a single
// goroutine. The race detector finds nothing in them and makes them several times as slow, so
// the stage unit runs them.
const scenarios = "^(TestScenarios|TestEveryCallMayFail|TestProxiesNeverLackWhatTheyShare|TestAnyCallMayFail)$"

// withScenarios are the packages that have them.
var withScenarios = []string{"./controllers/canaryrelease", "./controllers/trafficsplit"}

// wired are the packages that put the parts of a program together. Their tests are about flags, and
// the race detector would have a quarter more packages compiled for them. In make soak it looks at
// them too.
var wired = []string{"./cmd/serin", "./cmd/serin/trafficmetrics"}

func without(packages, some []string) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return slices.Contains(some, p) })
}

// longest are the packages whose tests take longest.
var longest = []string{
	"./proxy/agent", "./controllers/canaryrelease/child", "./metricsapi/source/prometheus", "./controllers/canaryrelease", "./controllers/trafficsplit",
	"./certificate", "./controllers/rollout/telemetry",
}

// longestOfCluster are those of the cluster tests.
var longestOfCluster = []string{"./integration", "./bench", "./cluster"}

// longestFirst has the longest packages begin first, so that no processor is idle while
// another runs the last of them.
func longestFirst(packages, longest []string) []string {
	rank := func(name string) int {
		if i := slices.Index(longest, name); i >= 0 {
			return i
		}
		return len(longest)
	}
	return slices.SortedStableFunc(slices.Values(packages), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}

// otherTools names the tests of a control plane that serves kinds of other tools too.
const otherTools = "OtherTools"

// alone are the tests that nothing runs beside, and which therefore have a process of their own:
// they start another control plane, or serve TrafficMetrics, of which a cluster has one.
const alone = "^(TestTheChartIsInstalledAsTheQuickstartSays|TestARolloutIsPromotedByTheTrafficSplitsThatAMeshBrought|TestWhatTheTrafficSplitsOfAMeshHaveNoRoomForIsRefused|" +
	"TestTrafficMetrics|TestWithoutAReplicaTheAPISaysSo|TestTheCommandServesTrafficMetricsWithTheChartsRights|TestTheCommandMeasuresByProxiesWithTheChartsRights|" +
	"TestReleasesAreMeasuredThroughTheAPIAsSoonAsItIsThere|TestTheTrafficPageShowsDeclaredProgrammedAndMeasuredShares|TestThePageDoesWhatKubectlDoesWithTheSameCredentials)$"

// long names the scenarios that harm the cluster itself for minutes. Each runs alone.
const long = "^TestLong"

// withoutC is the test of what a program with C can't do, which the race detector makes of every program. The
// stage unit runs it.
const withoutC = "^TestTheProcessCanOpenNothingAnyMore$"

// oldestKubernetes is the version that the chart's kubeVersion begins with.
const oldestKubernetes = "1.30"

// Soak are the stages of make soak: what is too long for each change.
func Soak(p Packages) []Stage {
	everything := slices.Concat(p.Operator.Pure, p.Operator.Concurrent)
	return []Stage{
		{Name: "soak-unit", About: "10,000 histories, and 1,000 schedules", Steps: []Step{
			soak(goTest(operatorModule, "./controllers/release"), "-histories", "10000"),
			soak(goTest(operatorModule, "./schedule"), "-histories", "1000"),
		}},
		{Name: "soak-race", About: "every package in random order, with the race detector", Steps: raced(slices.Concat(
			[]Step{insert(goTest(operatorModule, everything...), "-skip", withoutC), fresh(goTest(benchModule, "./..."))}, integration(p),
		))},
		{Name: "soak-fuzz", About: "random input for parsers and renderers", Steps: fuzz(p.FuzzTargets)},
		{Name: "soak-mutate", About: "small changes of decisions, each of which a test must notice", Steps: []Step{script("mutations", "make", "mutate")}},
		{Name: "soak-integration", About: "large sizes on a real control plane", Steps: []Step{
			soak(fresh(goTest(clusterModule, "-run", "TestTheWorkGrowsWithTheNumberOfSplits", "./integration")), "-splits", "50,100,200,500"),
		}},
		{Name: "soak-compat", About: "the main stories on the oldest Kubernetes that the chart takes", Steps: []Step{script("Kubernetes "+oldestKubernetes, "make", "compat", "VERSION="+oldestKubernetes)}},
		{Name: "soak-e2e", About: "high loads, long scenarios and planted losses on a real cluster", Steps: []Step{
			// Two cores carry the high load of one scenario, and not that of several.
			soak(verbose(fresh(goTest(clusterModule, "-skip", long, "-parallel", "1", "."))), "-soak"), soak(verbose(fresh(goTest(clusterModule, "-run", long, "-parallel", "1", ".")))),
		}},
		{Name: "soak-bench", About: "each benchmark once", Steps: []Step{
			goTest(operatorModule, append([]string{"-run", "^$", "-bench", ".", "-benchtime", "1x"}, everything...)...),
		}},
	}
}

func script(name string, args ...string) Step {
	return Step{Name: name, Folder: operatorModule, Args: args}
}

// goTest runs go test in a module. go vet has a step of its own.
func goTest(module string, args ...string) Step {
	return Step{Name: "go test", Folder: module, GoTest: true, Args: append([]string{"go", "test", "-json", "-vet=off", "-timeout", testTimeout}, args...)}
}

func verbose(s Step) Step {
	s.Verbose = true
	return s
}

// insert puts flags of go test before its other arguments.
func insert(s Step, flags ...string) Step {
	s.Args = slices.Insert(slices.Clone(s.Args), 3, flags...)
	return s
}

func race(s Step) Step {
	s.Race = true
	return insert(s, "-race")
}

// fresh takes no result from Go's cache. Go looks for changes of files that a test reads in the
// test's own module alone, and tests of the cluster read the operator's chart, pages and code.
func fresh(s Step) Step { return insert(s, "-count=1") }

// raced runs steps with the race detector, their tests in random order. Tests take several times as long with it.
func raced(steps []Step) (list []Step) {
	for _, s := range steps {
		list = append(list, soak(race(insert(s, "-shuffle=on"))))
	}
	return list
}

// withArgs gives flags to the tests themselves.
func withArgs(s Step, flags ...string) Step {
	if len(flags) == 0 {
		return s
	}
	s.Args = append(append(slices.Clone(s.Args), "-args"), flags...)
	return s
}

// soak gives flags to the tests themselves, and more time.
func soak(s Step, flags ...string) Step {
	s = withArgs(s, flags...)
	s.Args = slices.Clone(s.Args)
	s.Args[slices.Index(s.Args, testTimeout)] = soakTimeout
	return s
}

func fuzz(targets []FuzzTarget) (steps []Step) {
	for _, t := range targets {
		steps = append(steps, goTest(operatorModule, "-run", "^$", "-fuzz", "^"+t.Name+"$", "-fuzztime", "60s", "-fuzzminimizetime", "5s", t.Package))
	}
	return steps
}
