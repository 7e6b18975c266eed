// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
)

// answer is what the plugin did.
type answer struct {
	status    int
	out, errs string
}

// traffic runs kubectl traffic as a user ("" = the administrator) in the namespace.
func (s *scene) traffic(user, line string) answer {
	s.Helper()
	args := []string{"--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace, "--cache-dir", s.TempDir()}
	if user != "" {
		args = append(args, "--as", user, "--as-group", "system:authenticated")
	}
	var out, errs bytes.Buffer
	status := commands.Run(s.Context(), append(args, strings.Fields(line)...), nil, &out, &errs)
	return answer{status, out.String(), errs.String()}
}

// does runs the plugin and expects it to succeed.
func (s *scene) does(line string) answer {
	s.Helper()
	a := s.traffic("", line)
	if a.status != 0 {
		s.Fatalf("%s: exit status %d: %s", line, a.status, a.errs)
	}
	return a
}

// echo is a Service echo, split among versions that each have a Deployment.
func echo(t *testing.T, backends ...splitv1.Backend) *scene {
	t.Helper()
	s := newScene(t)
	s.create(service("echo"), split("echo", "echo", backends...))
	for _, b := range backends {
		s.create(service(b.Service), deployment(b.Service, 1))
	}
	return s
}

// block is what a split and its tags say.
func (s *scene) block(name string) (backends []splitv1.Backend, given map[string]string) {
	s.Helper()
	ts := s.get(s.Context(), name, &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit)
	given, err := tags.Read(ts.Annotations)
	if err != nil {
		s.Fatal(err)
	}
	return ts.Spec.Backends, given
}

func (s *scene) wantBlock(line string, want []splitv1.Backend, wantTags map[string]string) {
	s.Helper()
	backends, given := s.block("echo")
	if diff := cmp.Diff(want, backends); diff != "" {
		s.Errorf("%s: %s", line, diff)
	}
	if diff := cmp.Diff(wantTags, given); diff != "" {
		s.Errorf("%s: %s", line, diff)
	}
}

// The examples follow each other, as one would type them.
func TestTrafficIsSharedAndVersionsAreTaggedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := echo(t, splitv1.Backend{Service: "echo-v1", Weight: 3}, splitv1.Backend{Service: "echo-v2", Weight: 1})
	s.create(service("echo-v3"), deployment("echo-v3", 2))
	none := map[string]string{}
	for _, step := range []struct {
		line     string
		backends []splitv1.Backend
		tags     map[string]string
	}{
		{"update echo --tag echo-v1=stable --tag echo-v2=staging", []splitv1.Backend{{Service: "echo-v1", Weight: 3}, {Service: "echo-v2", Weight: 1}}, map[string]string{"stable": "echo-v1", "staging": "echo-v2"}},
		{"update echo --untag stable,staging --traffic echo-v1=20 --traffic echo-v2=80", []splitv1.Backend{{Service: "echo-v1", Weight: 20}, {Service: "echo-v2", Weight: 80}}, none},
		{"update echo --tag echo-v3=candidate", []splitv1.Backend{{Service: "echo-v1", Weight: 20}, {Service: "echo-v2", Weight: 80}, {Service: "echo-v3"}}, map[string]string{"candidate": "echo-v3"}},
		{"update echo --traffic candidate=2 --traffic echo-v2=98", []splitv1.Backend{{Service: "echo-v2", Weight: 98}, {Service: "echo-v3", Weight: 2}}, map[string]string{"candidate": "echo-v3"}},
		{"update echo --untag candidate --tag echo-v3=current", []splitv1.Backend{{Service: "echo-v2", Weight: 98}, {Service: "echo-v3", Weight: 2}}, map[string]string{"current": "echo-v3"}},
		{"update ts/echo --traffic current=30", []splitv1.Backend{{Service: "echo-v2", Weight: 70}, {Service: "echo-v3", Weight: 30}}, map[string]string{"current": "echo-v3"}},
		{"update echo --untag current --traffic echo-v3=0", []splitv1.Backend{{Service: "echo-v2", Weight: 100}}, none},
		{"update echo --tag echo-v1=stable,echo-v2=current, --traffic stable=50,current=50", []splitv1.Backend{{Service: "echo-v2", Weight: 50}, {Service: "echo-v1", Weight: 50}}, map[string]string{"stable": "echo-v1", "current": "echo-v2"}},
		{"tag echo stable- echo-v2=newest", []splitv1.Backend{{Service: "echo-v2", Weight: 50}, {Service: "echo-v1", Weight: 50}}, map[string]string{"current": "echo-v2", "newest": "echo-v2"}},
		{"update echo --traffic current=30,newest=40,echo-v1=30", []splitv1.Backend{{Service: "echo-v2", Weight: 70}, {Service: "echo-v1", Weight: 30}}, map[string]string{"current": "echo-v2", "newest": "echo-v2"}},
	} {
		s.does(step.line)
		s.wantBlock(step.line, step.backends, step.tags)
	}
}

func TestATagIsAServiceThatReachesItsVersionOnly(t *testing.T) {
	t.Parallel()
	s := echo(t, splitv1.Backend{Service: "echo-v1", Weight: 50}, splitv1.Backend{Service: "echo-v2", Weight: 50})
	s.does("update echo --tag echo-v1=stable")
	s.hasEndpoints("stable-echo", map[string]int{"echo-v1": 1})
	s.does("update echo --untag stable --tag echo-v2=stable")
	s.hasEndpoints("stable-echo", map[string]int{"echo-v2": 1})
	if a := s.does("tag echo -o wide"); !strings.Contains(a.out, "stable-echo") {
		t.Errorf("the tag is not listed:\n%s", a.out)
	}
	s.does("tag echo stable-")
	s.disappears("stable-echo", &corev1.Service{})

	s.does("tag echo echo-v1=stable")
	ts := s.get(t.Context(), "echo", &splitv1.TrafficSplit{})
	if err := admin.Delete(t.Context(), ts); err != nil {
		t.Fatal(err)
	}
	s.disappears("stable-echo", &corev1.Service{})
}

// disappears waits until an object is not there any more.
func (s *scene) disappears(name string, o client.Object) {
	s.Helper()
	s.eventually(name+" gone", func(ctx context.Context) bool { return apierrors.IsNotFound(admin.Get(ctx, s.key(name), o)) })
}

func TestLatestIsTheNewestVersionThatIsReady(t *testing.T) {
	t.Parallel()
	s := echo(t, splitv1.Backend{Service: "echo-v1", Weight: 100}, splitv1.Backend{Service: "echo-v2"}, splitv1.Backend{Service: "echo-v3"})
	s.hasEndpoints("echo-v1", map[string]int{"echo-v1": 1})
	s.hasEndpoints("echo-v2", map[string]int{"echo-v2": 1})
	s.hasEndpoints("echo-v3", map[string]int{"echo-v3": 1})
	// Times of objects have whole seconds: what was made in the same one is of the same age.
	s.eventually("another second", func(ctx context.Context) bool {
		var sets appsv1.ReplicaSetList
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		return admin.List(ctx, &sets, client.InNamespace(s.namespace)) == nil &&
			!slices.ContainsFunc(sets.Items, func(set appsv1.ReplicaSet) bool { return !set.CreationTimestamp.Before(&now) })
	})
	change(s, "echo-v2", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "example.invalid/app:v2" })
	s.eventually("@latest", func(context.Context) bool {
		a := s.traffic("", "update echo --traffic @latest=10,echo-v1=90 --dry-run=client")
		return a.status == 0 && strings.Contains(a.out, "echo-v2")
	})
	s.does("update echo --traffic @latest=10,echo-v1=90")
	s.wantBlock("@latest", []splitv1.Backend{{Service: "echo-v1", Weight: 90}, {Service: "echo-v2", Weight: 10}}, map[string]string{})
}

func TestACommandThatFailsOrIsADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := echo(t, splitv1.Backend{Service: "echo-v1", Weight: 60}, splitv1.Backend{Service: "echo-v2", Weight: 40})
	s.create(service("taken-echo"))
	s.does("update echo --tag echo-v1=stable")
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"get", "rollouts", ""})
	s.allow("half",
		rbacv1.PolicyRule{APIGroups: []string{"split.smi-spec.io"}, Resources: []string{"trafficsplits"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "delete"}})
	s.waitForServices("half")
	before := s.everything()
	for _, test := range []struct {
		user, line string
		status     int
		want       string
	}{
		{"", "update echo --tag echo-v2=new --traffic new=10,stable=90 --dry-run=server", 0, "updated (server dry run)"},
		{"", "update echo --tag echo-v2=new --traffic new=10,stable=90 --dry-run=client -o yaml", 0, "serin.dev/tags"},
		{"", "update echo --traffic echo-v1=60,echo-v2=50", 2, "want <=100"},
		{"", "update echo --traffic echo-v1=60,echo-v9=40", 1, "neither a tag of the split echo nor a Service"},
		{"", "update echo --tag echo-v2=taken", 1, "belongs to another owner"},
		{"", "update echo --untag none", 1, "not present"},
		{"", "update other --untag none", 1, `"other" not found`},
		{"", "update echo", 2, "nothing to change"},
		{"reader", "update echo --traffic echo-v1=100", 1, `the user "reader" may not patch trafficsplits.split.smi-spec.io in the namespace ` + s.namespace},
		{"half", "update echo --tag echo-v2=new", 1, `the user "half" may not patch trafficsplits.split.smi-spec.io`},
		{"stranger", "update echo --traffic echo-v1=100", 1, `the user "stranger" may not get trafficsplits.split.smi-spec.io`},
	} {
		a := s.traffic(test.user, test.line)
		if a.status != test.status || !strings.Contains(a.out+a.errs, test.want) {
			t.Errorf("%s %s: exit status %d, %s%s", test.user, test.line, a.status, a.out, a.errs)
		}
		if diff := cmp.Diff(before, s.everything()); diff != "" {
			t.Errorf("%s changed something: %s", test.line, diff)
		}
	}
}

// waitForServices waits until the API server knows that a user may make Services.
func (s *scene) waitForServices(user string) {
	s.Helper()
	s.eventually("the rights of "+user, func(ctx context.Context) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: "create", Resource: "services"},
		}}
		return admin.Create(ctx, review) == nil && review.Status.Allowed
	})
}

// everything is the versions of all that the plugin may change.
func (s *scene) everything() map[string]string {
	s.Helper()
	versions := map[string]string{}
	ts := s.get(s.Context(), "echo", &splitv1.TrafficSplit{})
	versions["the split"] = ts.GetResourceVersion()
	var services corev1.ServiceList
	if err := admin.List(s.Context(), &services, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for _, service := range services.Items {
		versions[service.Name] = service.ResourceVersion
	}
	return versions
}

// released creates a Rollout in the middle of a release.
func released(t *testing.T, s *scene) {
	t.Helper()
	ro := newRollout()
	s.create(ro)
	canary := int32(20)
	ro.Status = v1alpha1.RolloutStatus{
		ObservedGeneration: ro.Generation,
		Stable:             &v1alpha1.VersionStatus{Revision: "stable1", Replicas: 4, Ready: 4},
		Canary:             &v1alpha1.VersionStatus{Revision: "canary2", Replicas: 1, Ready: 1},
		Step:               &v1alpha1.StepStatus{Index: 0, Of: 2, Summary: "1/2", Weight: 20, StartedAt: metav1.NowMicro()},
		Weight:             &v1alpha1.WeightStatus{Requested: 20, Observed: &canary},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForApproval,
			Message: "Step 1/2: waits for a person.\x1b[2J", LastTransitionTime: metav1.Now(),
		}},
	}
	if err := admin.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
}

func TestDecisionsFromTheCommandLineAreBoundToWhatWasSeen(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	released(t, s)
	step := int32(0)
	for _, test := range []struct {
		user, line string
		status     int
		want       string
		control    *v1alpha1.Control
	}{
		{"editor", "rollout promote website", 1, `verb "promote"`, nil},
		{"oncall", "rollout promote website --reason good --dry-run=server", 0, "(server dry run)", nil},
		{"oncall", "rollout promote website --revision=other", 1, "releases revision canary2, not other", nil},
		{"oncall", "rollout retry website", 1, "was not rolled back", nil},
		{"oncall", "rollout promote website --reason good", 0, "requested: Promote of revision canary2 in step 1", &v1alpha1.Control{Revision: "canary2", Action: "Promote", StepIndex: &step, Reason: "good", By: "oncall"}},
		{"oncall", "rollout promote website --reason good", 1, "that was decided before", &v1alpha1.Control{Revision: "canary2", Action: "Promote", StepIndex: &step, Reason: "good", By: "oncall"}},
		{"oncall", "rollout skip website", 0, "Skip of revision canary2 in step 1", &v1alpha1.Control{Revision: "canary2", Action: "Skip", StepIndex: &step, By: "oncall"}},
		{"admin", "rollout promote website --full", 0, "PromoteFull of revision canary2", &v1alpha1.Control{Revision: "canary2", Action: "PromoteFull", By: "admin"}},
		{"oncall", "rollout abort website --reason bad", 0, "Abort of revision canary2", &v1alpha1.Control{Revision: "canary2", Action: "Abort", Reason: "bad", By: "oncall"}},
	} {
		a := s.traffic(test.user, test.line)
		if a.status != test.status || !strings.Contains(a.out+a.errs, test.want) {
			t.Errorf("%s %s: exit status %d, %s%s", test.user, test.line, a.status, a.out, a.errs)
		}
		if diff := cmp.Diff(test.control, s.rollout().Spec.Control); diff != "" {
			t.Errorf("%s: %s", test.line, diff)
		}
	}
}

func TestAReleaseIsShownAndPausedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	released(t, s)
	tree := s.does("rollout get website").out
	for _, want := range []string{"Rollout website", "├── stable stable1", "└── canary canary2", "80%", "20%", "Step 1/2: waits for a person.[2J"} {
		if !strings.Contains(tree, want) {
			t.Errorf("%q is missing in:\n%s", want, tree)
		}
	}
	if strings.Contains(tree, "\x1b") {
		t.Errorf("a control character reaches the terminal: %q", tree)
	}
	if a := s.does("rollout list -A"); !strings.Contains(a.out, s.namespace) || !strings.Contains(a.out, "WaitingForApproval") {
		t.Errorf("got %s", a.out)
	}
	if a := s.does("rollout list -o name"); a.out != "rollout.serin.dev/website\n" {
		t.Errorf("got %q", a.out)
	}
	if a := s.does("rollout pause website"); !s.rollout().Spec.Paused || !strings.Contains(a.out, "rollout.serin.dev/website paused") {
		t.Errorf("not paused: %s", a.out)
	}
	if a := s.does("rollout pause website"); !strings.Contains(a.out, "unchanged") {
		t.Errorf("got %s", a.out)
	}
	if s.does("rollout resume website"); s.rollout().Spec.Paused {
		t.Error("not resumed")
	}
	if a := s.does("rollout explain website"); !strings.Contains(a.out, "waits for a person") {
		t.Errorf("got %s", a.out)
	}
	if a := s.traffic("", "rollout get website --until=ready --timeout=1s"); a.status != 3 || !strings.Contains(a.errs, "the time limit of 1s has passed") {
		t.Errorf("exit status %d: %s%s", a.status, a.out, a.errs)
	}
	if a := s.traffic("", "__complete rollout get web"); !strings.Contains(a.out, "website\n") {
		t.Errorf("not completed: %s", a.out)
	}
	if a := s.traffic("", "rollout get none"); a.status != 1 || !strings.Contains(a.errs, `"none" not found`) {
		t.Errorf("exit status %d: %s", a.status, a.errs)
	}
}

func TestAPlanHeedsTheScheduleAndTellsOfFreezesThatCanNotBeSeen(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ro := newRollout(v1alpha1.Step{Weight: 10, Hold: "5m"}, v1alpha1.Step{Weight: 50, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 80})
	s.create(ro)
	s.bindClusterRole("viewer", "view")
	s.waitRights("viewer", may{"get", "rollouts", ""})
	a := s.traffic("viewer", "rollout plan website")
	if a.status != 0 || !strings.Contains(a.errs, `Freezes are left out: the user "viewer" may not list freezes.serin.dev in the whole cluster`) {
		t.Errorf("exit status %d: %s", a.status, a.errs)
	}
	if !strings.Contains(a.errs, "What the steps would find is left out, as the present traffic is unknown: ") {
		t.Errorf("nothing is said of the traffic: %s", a.errs)
	}
	for _, want := range []string{"10%", "a user or a hook", "unknown", "Promotion"} {
		if !strings.Contains(a.out, want) {
			t.Errorf("%q is missing in:\n%s", want, a.out)
		}
	}
	if a := s.does("rollout plan website -o json"); !strings.Contains(a.out, `"waitsFor": "a user or a hook"`) {
		t.Errorf("got %s", a.out)
	}
}

func TestLintSaysWhatTheClusterWouldRefuse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	file := filepath.Join(t.TempDir(), "rollout.yaml")
	lint := func(steps string) answer {
		text := "apiVersion: serin.dev/v1alpha1\nkind: Rollout\nmetadata: {name: website}\nspec:\n" +
			"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: website}\n  service: website\n  strategy: {steps: " + steps + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.traffic("", "rollout lint -f "+file)
	}
	for _, test := range []struct {
		steps  string
		status int
		want   string
	}{
		{"[{weight: 10, hold: 2m}]", 0, "rollout.serin.dev/website: would be accepted\n"},
		{"[{weight: 60, hold: 2m}]", 0, "advice: spec.strategy.steps[0].weight"},
		{"[{weight: 110}]", 1, "rollout.serin.dev/website: refused: "},
		{"[{weihgt: 10}]", 1, "weihgt"},
	} {
		if a := lint(test.steps); a.status != test.status || !strings.Contains(a.out, test.want) {
			t.Errorf("%s: exit status %d: %s%s", test.steps, a.status, a.out, a.errs)
		}
	}
	if err := admin.Get(t.Context(), s.key("website"), &v1alpha1.Rollout{}); !apierrors.IsNotFound(err) {
		t.Errorf("lint created the Rollout: %v", err)
	}
}

func TestUndoPutsTheTemplateOfAVersionBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(deployment("website", 1))
	s.eventually("the first ReplicaSet", func(context.Context) bool { return len(s.replicaSets()) == 1 })
	first := s.replicaSets()[0].Labels["pod-template-hash"]
	ro := newRollout()
	s.create(ro)
	ro.Status.Stable = &v1alpha1.VersionStatus{Revision: first, Replicas: 1, Ready: 1}
	if err := admin.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	s.setImage("example.invalid/app:bad")
	if s.does("rollout undo website --dry-run=server"); s.deployment().Spec.Template.Spec.Containers[0].Image != "example.invalid/app:bad" {
		t.Error("a dry run changed the template")
	}
	s.does("rollout undo website")
	template := s.deployment().Spec.Template
	if template.Spec.Containers[0].Image != "example.invalid/app:v1" || template.Labels["pod-template-hash"] != "" {
		t.Errorf("got %+v", template)
	}
	if a := s.traffic("", "rollout undo website --to-revision=none"); a.status != 1 || !strings.Contains(a.errs, "revision none") {
		t.Errorf("exit status %d: %s", a.status, a.errs)
	}
}

// Decisions rely on it: the API server tells a version that is gone from one that is not
// valid.
func TestAPatchOfAVersionThatIsGoneIsAConflict(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(newRollout(v1alpha1.Step{Weight: 10}))
	ro := s.rollout()
	gone := ro.ResourceVersion
	change(s, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) { ro.Spec.Paused = true })
	patch := `[{"op":"replace","path":"/metadata/resourceVersion","value":"` + gone + `"},{"op":"add","path":"/spec/control","value":{"revision":"x","action":"Abort"}}]`
	if err := admin.Patch(t.Context(), ro, client.RawPatch(types.JSONPatchType, []byte(patch))); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if c := s.rollout().Spec.Control; c != nil {
		t.Errorf("it was written: %+v", c)
	}
}
