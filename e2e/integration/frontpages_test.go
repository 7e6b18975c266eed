// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/tools"
)

// The pages that newcomers begin with. Each of their commands is run as it stands, in the order of the page,
// or is one of playedElsewhere.
const (
	readme       = "../README.md"
	quickstart   = "quickstart.md"
	helmTutorial = "tutorials/helm-canary.md"
)

// playedElsewhere are the commands that need more than a control plane, with the tests that play what they do.
// That the commands are accepted as they stand is tested here.
var playedElsewhere = map[string]string{
	"make demo": "TestDemo plays its story on a real cluster",
	"make demo DEMO_FLAGS='--kill manager@v2:promote --kill manager@v3:rollback'": "TestNothingIsLostWhileAllCrashes and TestFaultsAreInjectedOnceAtTheirMoment",
	"SERIN_KUBECONFIG=$HOME/.kube/config SERIN_CONTEXT=kind-kind make demo":       "TestAClusterThatIsNamedIsUsedAndLeftAlone",
	"make demo-down": "TestOnAControlPlane removes what a demo leaves",
	"make test":      ".ci/run: it is what continuous integration runs",
	"make e2e":       ".ci/run: it is one of the stages of make test",
	"make images REGISTRY=registry.example.com/me TAG=test PUSH=1":                    "TestARegistryHasTheImageAndItsDocuments pushes to a registry",
	"make images REGISTRY=localhost:5000 TAG=dev PUSH=1":                              "TestARegistryHasTheImageAndItsDocuments pushes to a registry",
	"SERIN_KUBECONFIG=$HOME/.kube/config SERIN_CONTEXT=kind-kind make cluster-images": "TestAClusterThatIsNamedIsUsedAndLeftAlone",
	"make images RELEASE_FLAGS=--demo":                                                "TestTheFolderHoldsImagesWithTheirDocuments",
	"cd e2e && go run ./cmd/demo --help":                                              "TestCommandsThatArePlayedElsewhereAreAccepted",
	"kubectl traffic dashboard":                                                       "TestAReleaseGoesOnFromTheDashboard, since it opens a browser",
	"kubectl traffic canary deprecate shop-1-29":                                      "TestACanaryIsListedAndEndedFromTheCommandLine, since the tutorial keeps the canary",
}

// outside are the commands that no test runs, since a cluster of containers or of a virtual machine takes an engine
// that the tests do not have, each with what is shown of it all the same.
var outside = map[string]string{
	"kind create cluster":             "TestAClusterOfKindIsReachedByItsContextAndTakesTheImages has all of kind but the node",
	"minikube start":                  "minikube looks for an engine before it does anything, also with --dry-run",
	"minikube addons enable registry": "minikube asks a cluster that it has started; TestARegistryHasTheImageAndItsDocuments pushes to another registry",
	"minikube kubectl -- --namespace kube-system port-forward service/registry 5000:80 & sleep 5": "the Service is one of minikube's addon",
}

// withoutEnd are the commands that run until they are interrupted.
var withoutEnd = regexp.MustCompile(` --watch$`)

var (
	// remark is a comment at the end of a command.
	remark = regexp.MustCompile(`\s+# .*$`)
	// aside is code in a sentence that is a command.
	aside = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*(?:kubectl|helm|make|go|cd) [^`]+)`")
	// fencedCode is a block of code.
	fencedCode = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// commandsIn are the commands of a page in its shell blocks, and then those in its sentences.
func commandsIn(t *testing.T, name string) (blocks, asides []string) {
	t.Helper()
	for _, b := range whole(page(t, name)).blocks {
		if b.kind != "sh" && b.kind != "console" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			blocks = append(blocks, strings.Join(strings.Fields(remark.ReplaceAllString(strings.TrimSpace(line), "")), " "))
		}
	}
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range aside.FindAllStringSubmatch(fencedCode.ReplaceAllString(string(content), ""), -1) {
		asides = append(asides, strings.Join(strings.Fields(code[1]), " "))
	}
	return blocks, asides
}

// here are the commands that are run in these tests: without those that are played elsewhere, and without
// those of Helm, which have a cluster of their own, or only those.
func here(commands []string, helm bool) []string {
	return slices.DeleteFunc(commands, func(c string) bool {
		return playedElsewhere[c] != "" || outside[c] != "" || strings.HasPrefix(c, "helm ") != helm
	})
}

// follows runs commands as they stand. What does not end by itself has to print something, and is interrupted
// when the others have ended.
func (r *reader) follows(commands []string) {
	r.Helper()
	for _, c := range commands {
		if strings.Contains(c, "rollout record ") { // it is written after the status that says that the release has ended
			r.awaitObject("the recording", &v1alpha1.AnalysisResult{}, "website", func() bool { return true })
		}
		if !withoutEnd.MatchString(c) {
			r.follow(c)
			continue
		}
		file, err := os.Create(filepath.Join(r.TempDir(), "printed"))
		if err != nil {
			r.Fatal(err)
		}
		running := exec.CommandContext(r.Context(), "sh", "-euc", r.functions+"exec "+c)
		running.Dir, running.Stdout, running.Stderr = r.folder, file, file
		running.Env = environment(r.kubeconfig)
		if err := running.Start(); err != nil {
			r.Fatal(err)
		}
		defer func() {
			if err := running.Process.Signal(syscall.SIGINT); err != nil {
				r.Errorf("%s has ended by itself: %v", c, err)
			}
			_ = running.Wait() // it was interrupted
			_ = file.Close()
		}()
		r.eventually(c+" prints the website", func(context.Context) bool {
			printed, err := os.ReadFile(file.Name())
			return err == nil && strings.Contains(string(printed), "website")
		})
	}
}

func TestTheCommandsOfTheFrontPagesWork(t *testing.T) {
	t.Parallel()
	files, functions := beginning(t)
	r := newReader(t, files)
	r.functions = pathWithPlugin(t, nil) + functions
	root := checkoutRoot(t)
	for _, folder := range []string{"charts", "examples"} {
		if err := os.Symlink(filepath.Join(root, folder), filepath.Join(r.folder, folder)); err != nil {
			t.Fatal(err)
		}
	}
	r.begin()
	r.run("kubectl apply -f examples/demo/namespace.yaml -f examples/demo/website.yaml -f examples/demo/rollout.yaml") // as make demo does
	r.run("kubectl set image deployment/website app=nginx:1.29")
	r.waitReason(v1alpha1.ReasonHolding)
	_, tutorials := commandsIn(t, tutorial)
	r.follows(here(tutorials, false))
	for _, name := range []string{quickstart, readme} {
		blocks, asides := commandsIn(t, name)
		r.follows(here(slices.Concat(blocks, asides), false))
	}
}

// The commands of Helm have a control plane without the chart.
func TestTheChartIsInstalledAsTheQuickstartSays(t *testing.T) {
	otherPlane(t)
	s := newScene(t)
	root := checkoutRoot(t)
	blocks, _ := commandsIn(t, quickstart)
	commands := here(blocks, true)
	if len(commands) != 4 {
		t.Fatalf("the commands of Helm are %q, and four are expected: to install in three ways, and to test", commands)
	}
	s.serveChecks()
	helm := func(c string) {
		s.sh(plane.Kubeconfig, "PATH='"+filepath.Dir(helmPath(t))+"':$PATH\ncd '"+root+"'\n"+c)
	}
	for i, c := range commands {
		if i > 0 && strings.HasPrefix(c, "helm install ") {
			helm("helm uninstall serin --namespace serin-system --no-hooks --wait")
		}
		helm(c)
	}
	blocks, _ = commandsIn(t, readme)
	for _, c := range here(blocks, true) {
		t.Errorf("nothing runs %q of the README", c)
	}
}

func TestCommandsThatArePlayedElsewhereAreAccepted(t *testing.T) {
	t.Parallel()
	s, root, path := newScene(t), checkoutRoot(t), pathWithPlugin(t, nil)
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range append(tutorialPages(t), readme, quickstart) {
		blocks, asides := commandsIn(t, name)
		for _, c := range append(blocks, asides...) {
			known[c] = true
		}
	}
	for c := range outside {
		if !known[c] {
			t.Errorf("no page has %q", c)
		}
	}
	if out := s.sh("", "'"+toolPath(t, tools.Kind)+"' create cluster --help"); !strings.Contains(out, "kind create cluster [flags]") {
		t.Errorf("kind has no command to create a cluster:\n%s", out)
	}
	for c, by := range playedElsewhere {
		if !known[c] {
			t.Errorf("no page has %q", c)
		}
		if !strings.HasPrefix(by, "Test") && !strings.Contains(string(ci), "make test") {
			t.Errorf("%q: neither a test nor continuous integration runs it", c)
		}
		line := c
		if asked := makes.ReplaceAllString(c, "${1}make --dry-run --no-print-directory "); asked != c {
			line = s.sh("", "cd '"+root+"'\n"+asked)
		}
		if !strings.HasSuffix(line, " --help") {
			line = strings.TrimSpace(line) + " --help"
		}
		if out := s.sh("", path+"cd '"+root+"'\n"+line); !strings.Contains(out, "Usage:") {
			t.Errorf("%q runs %q, which does not say how it is used:\n%s", c, line, out)
		}
	}
}

// makes is a command that has make do something, after variables.
var makes = regexp.MustCompile(`^((?:[A-Z_]+=\S+ )*)make `)

// TestEveryTutorialIsPlayed: each shell block of a tutorial is run, and each command in its sentences.
func TestEveryTutorialIsPlayed(t *testing.T) {
	t.Parallel()
	if got := tutorialPages(t); !slices.Equal(got, []string{tutorial, helmTutorial}) {
		t.Errorf("the tutorials are %q, and those that tests play are %q and %q", got, tutorial, helmTutorial)
	}
}

func tutorialPages(t *testing.T) (pages []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "tutorials", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pages = append(pages, "tutorials/"+filepath.Base(file))
	}
	return pages
}

func checkoutRoot(t *testing.T) string {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	return checkout.Root
}

// serveChecks runs the pods that helm test waits for, as a node would: their command, with the rights of their
// ServiceAccount.
func (s *scene) serveChecks() {
	s.Helper()
	binary, err := builtCommand()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	var done sync.WaitGroup
	s.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		poll(ctx, func(ctx context.Context) bool { return s.ranCheck(ctx, binary) })
	})
}

// ranCheck is whether there was a pod of a check, which has ended now.
func (s *scene) ranCheck(ctx context.Context, binary string) bool {
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, client.InNamespace(operatorSpace), client.MatchingLabels{"app.kubernetes.io/component": "check"}); err != nil || len(pods.Items) == 0 {
		return false
	}
	pod := &pods.Items[0]
	config, err := plane.ConfigFor("system:serviceaccount:"+pod.Namespace+":"+pod.Spec.ServiceAccountName, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		s.Error(err)
		return true
	}
	command := exec.CommandContext(ctx, binary, pod.Spec.Containers[0].Args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(s, config, pod.Namespace))
	phase := corev1.PodSucceeded
	if out, err := command.CombinedOutput(); err != nil {
		s.Errorf("%v: %v\n%s", command.Args, err, out)
		phase = corev1.PodFailed
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	if err := admin.Status().Patch(ctx, pod, patch); err != nil {
		s.Error(err)
	}
	return true
}
