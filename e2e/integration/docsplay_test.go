// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// reader is somebody who follows a page at a terminal, in a folder and a namespace
// of their own. Their clock is the operator's.
type reader struct {
	*scene
	folder, kubeconfig string
	measured           *measurements
	// files are those of the page, by name.
	files map[string]string
	// functions of the shell that the page defines.
	functions string
	// applies are the files that the section applies itself.
	applies map[string]bool
	// begun is whether the website and its Rollout were applied.
	begun   bool
	printed string
}

// newReader gives somebody a namespace with an operator.
func newReader(t *testing.T, files map[string]string, see ...func(*sight)) *reader {
	t.Helper()
	r := &reader{scene: newScene(t), folder: t.TempDir(), measured: newMeasurements(), files: maps.Clone(files)}
	content, err := os.ReadFile(plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	r.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(r.kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	r.run("kubectl config set-context --current --namespace=" + r.namespace)
	r.serveProxies()
	r.startOperator(r.measured, see...)
	return r
}

// run runs commands in the reader's folder.
func (r *reader) run(commands string) string {
	r.Helper()
	return r.sh(r.kubeconfig, "cd '"+r.folder+"'\n"+r.functions+commands)
}

// begin is what the page's first section tells to do.
func (r *reader) begin() {
	r.Helper()
	if r.begun {
		return
	}
	r.begun = true
	r.save()
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if name != rolloutFile && !r.applies[name] {
			r.run("kubectl apply -f " + name)
		}
	}
	r.run("kubectl apply -f " + rolloutFile)
	r.waitReady()
}

const rolloutFile = "rollout.yaml"

// applied finds the files that a section applies itself.
var applied = regexp.MustCompile(`kubectl apply -f ([\w.-]+)`)

func (r *reader) save() {
	r.Helper()
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(r.folder, name), []byte(content), 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// fileName is in the comment that begins a file of a page.
var fileName = regexp.MustCompile(`^# (\S+\.yaml)\n`)

// write puts a file of the page, or a part of the Rollout's spec, in the folder.
func (r *reader) write(b block) {
	r.Helper()
	if name := fileName.FindStringSubmatch(b.text); name != nil {
		r.files[name[1]] = b.text
		r.save()
		return
	}
	merged, err := merge(r.files[rolloutFile], b.text)
	if err != nil {
		r.Fatalf("line %d: %v", b.line, err)
	}
	r.files[rolloutFile] = merged
	r.save()
	if r.begun {
		r.run("kubectl apply -f " + rolloutFile)
	}
}

// merge puts a part of a spec in a manifest: each of its fields takes the place of
// the one that was there.
func merge(manifest, part string) (string, error) {
	whole, patch := map[string]any{}, map[string]map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &whole); err != nil {
		return "", err
	}
	if err := yaml.UnmarshalStrict([]byte(part), &patch); err != nil {
		return "", err
	}
	spec, ok := whole["spec"].(map[string]any)
	if !ok || len(patch["spec"]) == 0 || len(patch) > 1 {
		return "", fmt.Errorf("neither a file, which begins with its name, nor a part of a spec:\n%s", part)
	}
	maps.Copy(spec, patch["spec"])
	out, err := yaml.Marshal(whole)
	return string(out), err
}

// play does what a section of the page tells.
func (r *reader) play(s section) {
	r.Helper()
	r.applies = map[string]bool{}
	for _, b := range s.blocks {
		for _, name := range applied.FindAllStringSubmatch(b.text, -1) {
			r.applies[name[1]] = b.kind == "sh"
		}
	}
	var again func() string // what is printed when the last block is done again
	for _, b := range s.blocks {
		switch b.kind {
		case "yaml":
			r.write(b)
		case "comment":
			r.perform(b)
		case "sh":
			r.begin()
			events := listsEvents.FindString(b.text)
			done := r.follow(strings.TrimSuffix(b.text, events))
			again = func() string {
				return revisionsNamed(strings.ReplaceAll(done+r.run(events), r.namespace, "shop"), r.replicaSets())
			}
			r.printed = again()
			if events == "" {
				again = nil
			}
		case "text":
			if again != nil {
				poll(r.Context(), func(context.Context) bool {
					r.printed = again()
					return normal(r.printed) == normal(b.text)
				})
			}
			if got, want := normal(r.printed), normal(b.text); got != want {
				r.Errorf("line %d: the page shows\n%s\nand kubectl\n%s", b.line, want, r.printed)
			}
		case "promql", "console", "":
		default:
			r.Errorf("line %d: nobody knows how to play %q", b.line, b.kind)
		}
		if r.Failed() {
			r.explain(b)
		}
	}
	if !r.begun {
		r.begin()
		r.follow(releaseAndWait)
	}
}

// listsEvents finds a last command that lists events. They come some time after what they tell of,
// so that a user who misses one asks again.
var listsEvents = regexp.MustCompile(`(?m)^kubectl events .*\n?\z`)

// revisionsNamed is what was printed with a name as pages have it in place of each
// revision. A revision is a hash and has one character to ten, so that its look alone
// does not tell it from a word.
func revisionsNamed(printed string, versions []appsv1.ReplicaSet) string {
	for i := range versions {
		revision := versions[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		printed = regexp.MustCompile(`\b`+regexp.QuoteMeta(revision)+`\b`).ReplaceAllString(printed, "5d4f8c7b9")
	}
	return printed
}

// explain ends the test with what there is to know about a block that failed.
func (r *reader) explain(b block) {
	r.Helper()
	for _, ro := range r.rollouts(r.Context()) {
		r.Logf("Rollout %s: %s", ro.Name, dump(ro.Status))
	}
	r.Logf("TrafficSplit: %s", dump(r.splitStatus()))
	r.Fatalf("line %d failed\n%s", b.line, b.text)
}

// releaseAndWait is what a section is for that shows a part of a spec only.
const releaseAndWait = `
kubectl set image deployment/website app=nginx:1.29
kubectl wait --for=condition=Reconciling rollouts.serin.dev/website --timeout=5m
kubectl wait --for=condition=Ready rollouts.serin.dev/website --timeout=5m`

// follow runs commands. Where they wait for the end of a release, its time goes by.
func (r *reader) follow(commands string) string {
	r.Helper()
	commands = waitsAsLong.ReplaceAllString(commands, "${1}5m")
	if !waitsForTheEnd.MatchString(commands) {
		return r.run(commands)
	}
	ctx, cancel := context.WithCancel(r.Context())
	var done sync.WaitGroup
	done.Go(func() { r.letTimePass(ctx) })
	defer done.Wait()
	defer cancel()
	return r.run(commands)
}

// waitsAsLong finds how long a page lets readers wait for what comes soon on their
// clusters. Here it comes when the machine has time.
var waitsAsLong = regexp.MustCompile(`(kubectl wait .*--timeout=)\w+`)

// waitsForTheEnd finds commands that wait for a state that time does not end.
var waitsForTheEnd = regexp.MustCompile(`--for=condition=Ready|status\.stable\.service|traffic rollout status|await (Stable|RolledBack|WaitingForApproval|AnalysisFailed)`)

// perform does what a comment says: "5m later", "the new version fails" or "the operator is gone".
func (r *reader) perform(b block) {
	r.Helper()
	if text, ok := strings.CutSuffix(b.text, " later"); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			r.Fatalf("line %d: %v", b.line, err)
		}
		r.pass(r.Context(), d)
		return
	}
	switch b.text {
	case "the new version fails":
		r.measured.mu.Lock()
		r.measured.badCanary = true
		r.measured.mu.Unlock()
	case "the operator is gone":
		for _, o := range r.operators {
			o.stop(r.T)
		}
	default:
		r.Errorf("line %d: nobody knows how to play %q", b.line, b.text)
	}
}

// rollouts are those of the page so far.
func (r *reader) rollouts(ctx context.Context) []v1alpha1.Rollout {
	list := &v1alpha1.RolloutList{}
	if err := admin.List(ctx, list, client.InNamespace(r.namespace)); err != nil && ctx.Err() == nil {
		r.Errorf("list Rollouts: %v", err)
	}
	return list.Items
}

// pass lets time go by for the operator.
func (r *reader) pass(ctx context.Context, d time.Duration) {
	r.measured.mu.Lock()
	r.measured.skipped += d
	r.measured.mu.Unlock()
	for _, ro := range r.rollouts(ctx) {
		r.measured.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: client.ObjectKeyFromObject(&ro)}
	}
}

// known is whether the operators know what the API server does by now.
func (r *reader) known(ctx context.Context) bool {
	for _, ro := range r.rollouts(ctx) {
		for _, o := range r.operators {
			if !o.stopped() && !isSeen(ctx, o.view, &ro) {
				return false
			}
		}
	}
	return true
}

// inTime are the states that nothing but time ends.
var inTime = []string{v1alpha1.ReasonHolding, v1alpha1.ReasonWaitingForSchedule, v1alpha1.ReasonRollingBack}

// letTimePass goes from one moment at which a release goes on to the next, when the
// operator has seen all that has happened, and nothing else does.
func (r *reader) letTimePass(ctx context.Context) {
	seen := map[types.UID]string{}
	for ctx.Err() == nil {
		for _, ro := range r.rollouts(ctx) {
			_, reason, _ := ready(&ro)
			next := ro.Status.NextTransitionTime
			switch {
			case ro.ResourceVersion != seen[ro.UID]:
				seen[ro.UID] = ro.ResourceVersion
			case next != nil && slices.Contains(inTime, reason) && r.known(ctx):
				r.pass(ctx, max(next.Sub(r.measured.Now()), 0)+time.Second)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestAPartOfASpecTakesThePlaceOfWhatWasThere(t *testing.T) {
	t.Parallel()
	got, err := merge("kind: Rollout\nspec:\n  service: website\n  strategy: {steps: [{weight: 1}]}\n", "spec:\n  strategy: {ramp: {to: 9}}\n")
	if want := "kind: Rollout\nspec:\n  service: website\n  strategy:\n    ramp:\n      to: 9\n"; err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestARevisionIsToldByItsVersionWhateverItsLength(t *testing.T) {
	t.Parallel()
	versions := []appsv1.ReplicaSet{{}, {}}
	for i, revision := range []string{"b95d885", "6c"} {
		versions[i].Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: revision}
	}
	got := normal(revisionsNamed("Revision b95d885 after 6c; website-b95d885-x2x7p, 16c", versions))
	if want := "Revision REVISION after REVISION; website-REVISION-x2x7p, 16c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
