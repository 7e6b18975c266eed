// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/serin-dev/serin/e2e/tools"
)

// function begins a block that defines functions of the shell.
var function = regexp.MustCompile(`^\w+\(\) \{`)

// tutorial is the page whose files and functions the others use.
const tutorial = "tutorials/first-release.md"

// beginning is what the tutorial gives its readers: files, and functions of the shell.
func beginning(t *testing.T) (files map[string]string, functions string) {
	t.Helper()
	files = map[string]string{}
	var shell strings.Builder
	for _, b := range whole(page(t, tutorial)).blocks {
		if name := fileName.FindStringSubmatch(b.text); b.kind == "yaml" && name != nil {
			files[name[1]] = b.text
		}
		if b.kind == "sh" && function.MatchString(b.text) {
			shell.WriteString(b.text)
		}
	}
	if len(files) != 2 || shell.Len() == 0 {
		t.Fatalf("the tutorial has %d files and the functions %q", len(files), shell.String())
	}
	return files, shell.String()
}

// whole is a page whose sections are played one after the other, as one.
func whole(sections []section) (all section) {
	for _, s := range sections {
		all.blocks = append(all.blocks, s.blocks...)
	}
	return all
}

// played are the pages whose sections begin with a stable website each.
var played = []string{
	"rollout.md", "how-to/ab-test.md", "how-to/approvals.md", "how-to/blue-green.md", "how-to/change-steps.md", "how-to/configuration.md",
	"how-to/failed-analysis.md", "how-to/go-back.md", "how-to/no-proxy.md", "how-to/pipelines.md", "how-to/proxies-of-one-app.md", "how-to/ramp.md", "how-to/scaling-and-zones.md",
	"how-to/stop-using-it.md", "how-to/two-services.md", "how-to/windows-and-freezes.md",
}

// notPlayed are the others, which need what the control plane of these tests lacks.
var notPlayed = map[string]string{
	"how-to/first-rollout.md":              "it begins without a Rollout: TestThePageAboutTheFirstRolloutCanBeFollowed plays it",
	"how-to/gateways.md":                   "a gateway: TestARolloutIsPromotedByAGateway plays it",
	"how-to/gitops.md":                     "Argo CD or Flux: TestArgoCDSeesNoDriftInTheMiddleOfARelease and e2e/gitops have their parts",
	"how-to/helm-canaries.md":              "it repeats the tutorial, which TestTheTutorialAboutHelmCanariesCanBeFollowed plays",
	"how-to/migrate-from-argo-rollouts.md": "TestTheSwitchFromArgoRolloutsAndBackKeepsEndpoints plays it",
	"how-to/migrate-from-flagger.md":       "TestTheSwitchFromFlaggerAndBackKeepsEndpoints plays it",
	"how-to/session-affinity.md":           "cookies of a real proxy: TestAClientOfOneSessionIsDrawnAnewInTheNext and TestEachReleaseHasCookiesOfItsOwn show it",
	"how-to/other-tools.md":                "Flagger and Argo Rollouts: TestFlaggerReleasesByTrafficSplitsOfOlderVersions plays what they write",
	"how-to/network-policies.md":           "policies that isolate: TestANamespaceThatDeniesByDefault plays them",
	"how-to/shared-metrics.md":             "a Prometheus: TestTheSharedProviderOfThePageIsAdmitted checks its objects",
	"how-to/traces.md":                     "a receiver of traces: TestTheSpansOfAReconcileArrive has one",
	"how-to/dashboard-in-the-cluster.md":   "an identity provider and a browser: TestAUserLogsInSeesTheFleetAndLogsOutInTheBrowser plays the login",
	"how-to/prometheus-p99.md":             "a Prometheus: TestANumberOutsideOfItsLimitRollsBack has a server of numbers",
}

// playedAlone are sections of these pages with tests of their own, by their headings.
var playedAlone = map[string]string{
	"Judge it by your metrics":         "TestAReleaseWithoutAProxyIsJudgedByAPrometheus",
	"What counts the requests":         "TestAReleaseWithoutAProxyIsJudgedByAPrometheus",
	"Nodes of its own, and a priority": "TestARolloutSaysHowItsProxiesRun",
}

func TestThePagesAboutRolloutsCanBeFollowed(t *testing.T) {
	t.Parallel()
	files, functions := beginning(t)
	t.Run(tutorial, func(t *testing.T) {
		t.Parallel()
		r := newReader(t, files)
		r.functions = functions
		r.begun = true // the page says itself how to begin
		r.play(whole(page(t, tutorial)))
	})
	for _, name := range played {
		for _, s := range page(t, name) {
			if playedAlone[s.heading] != "" {
				continue
			}
			t.Run(name+" "+s.heading, func(t *testing.T) {
				t.Parallel()
				r := newReader(t, files)
				r.functions = functions
				r.play(s)
			})
		}
	}
}

func TestTheTutorialAboutHelmCanariesCanBeFollowed(t *testing.T) {
	t.Parallel()
	r := newReader(t, nil, withCanaries)
	r.begun, r.functions = true, pathWithPlugin(t, map[string]string{"helm": helmPath(t)})
	r.play(whole(page(t, helmTutorial)))
	_, asides := commandsIn(t, helmTutorial)
	for _, helm := range []bool{false, true} {
		r.follows(here(asides, helm))
	}
}

// pathWithPlugin is the line of a shell with which kubectl finds the plugin, and the shell other
// programs by their names.
func pathWithPlugin(t *testing.T, programs map[string]string) string {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := checkout.Program(t.Context(), "cmd/kubectl-traffic")
	if err != nil {
		t.Fatal(err)
	}
	bin, links := t.TempDir(), map[string]string{"kubectl-traffic": plugin}
	maps.Copy(links, programs)
	for name, program := range links {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH='" + bin + "':$PATH\n"
}

func TestEveryHowToPageIsPlayedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "how-to", "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, file := range files {
		name := "how-to/" + filepath.Base(file)
		if _, why := notPlayed[name]; why == slices.Contains(played, name) {
			t.Errorf("%s has to be among the pages that are played, or among those that are not, with the reason", name)
		}
	}
}
