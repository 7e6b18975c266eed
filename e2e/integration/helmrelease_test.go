// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releaseapi "helm.sh/helm/v4/pkg/release"
	rcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/canaryrights"
	"github.com/serin-dev/serin/controllers/canaryrelease/child"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/e2e/tools"
)

// The program helm has this field manager, and so has what a user does here.
func init() { kube.ManagedFieldsManager = "helm" }

// helmAccount is the ServiceAccount that stands for a namespace.
const helmAccount = "serin-canary"

// helmProgram is the program that runs Helm, which is built.
func helmProgram(t *testing.T) string {
	t.Helper()
	path, err := builtHelm()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var builtHelm = sync.OnceValues(func() (string, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return "", err
	}
	return checkout.Program(context.Background(), "cmd/serin-helm") // for all tests that run it
})

// helmScene is a namespace whose people use Helm.
type helmScene struct {
	*scene
	person   *action.Configuration
	releases *child.Releases
}

func newHelmScene(t *testing.T) *helmScene {
	t.Helper()
	return helmIn(newScene(t))
}

// helmIn has users of a namespace use Helm.
func helmIn(s *scene) *helmScene {
	s.Helper()
	h := &helmScene{scene: s, releases: child.New(plane.Config, child.Options{Program: helmProgram(s.T), Account: helmAccount})}
	flags := genericclioptions.NewConfigFlags(false)
	cache := s.TempDir()
	flags.KubeConfig, flags.Namespace, flags.CacheDir = &plane.Kubeconfig, &h.namespace, &cache
	h.person = action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := h.person.Init(flags, h.namespace, "secret"); err != nil {
		s.Fatal(err)
	}
	return h
}

// optIn gives the account of the namespace what kubectl traffic canary rights makes of the
// manifest of a release, and no more.
func (h *helmScene) optIn(release string) {
	h.Helper()
	found, err := action.NewGet(h.person).Run(release)
	if err != nil {
		h.Fatal(err)
	}
	accessor, err := releaseapi.NewAccessor(found)
	if err != nil {
		h.Fatal(err)
	}
	objects, err := decode([]byte(accessor.Manifest()))
	if err != nil {
		h.Fatal(err)
	}
	rights, _, err := canaryrights.Compute(objects, canaryrights.Account{Namespace: h.namespace, Name: helmAccount}, admin.RESTMapper())
	if err != nil {
		h.Fatal(err)
	}
	h.create(rights...)
	h.waitRights("system:serviceaccount:"+h.namespace+":"+helmAccount, may{"get", "secrets", ""}, may{"delete", "secrets", ""})
}

func (h *helmScene) install(name string, values map[string]any) {
	h.Helper()
	in := action.NewInstall(h.person)
	in.ReleaseName, in.Namespace, in.WaitStrategy = name, h.namespace, kube.HookOnlyStrategy
	c, err := loader.LoadDir("../../controllers/canaryrelease/chart/testdata/" + name)
	if err != nil {
		h.Fatal(err)
	}
	if _, err := in.Run(c, values); err != nil {
		h.Fatal(err)
	}
}

func (h *helmScene) upgrade(name string, values map[string]any) {
	h.Helper()
	up := action.NewUpgrade(h.person)
	up.Namespace, up.WaitStrategy = h.namespace, kube.HookOnlyStrategy
	c, err := loader.LoadDir("../../controllers/canaryrelease/chart/testdata/" + name)
	if err != nil {
		h.Fatal(err)
	}
	if _, err := up.Run(name, c, values); err != nil {
		h.Fatal(err)
	}
}

func (h *helmScene) request(name, config string) releases.Request {
	return releases.Request{Namespace: h.namespace, Release: name, Version: 1, Config: []byte(config), UID: "7d2f0f6e-2b0f-4f8e-9d6a-3f1c2b4a5d6e", Name: "try"}
}

// history is what helm history shows, without times.
func (h *helmScene) history(name string) []string {
	h.Helper()
	records, err := action.NewHistory(h.person).Run(name)
	if err != nil {
		h.Fatal(err)
	}
	lines := make([]string, len(records))
	for _, r := range records {
		r := r.(*helmrelease.Release)
		lines[r.Version-1] = r.Info.Status.String() + " " + r.Info.Description
	}
	return lines
}

// own writes fields as Serin does while proxies are in the path of a Service.
func (h *helmScene) own(o client.Object, patch string) {
	h.Helper()
	o.SetNamespace(h.namespace)
	if err := admin.Patch(h.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("serin")); err != nil {
		h.Fatal(err)
	}
}

// args are the arguments of the container of the release tcp.
func (h *helmScene) args() string {
	h.Helper()
	d := &appsv1.Deployment{}
	if err := admin.Get(h.Context(), h.key("tcp"), d); err != nil {
		h.Fatal(err)
	}
	return strings.Join(d.Spec.Template.Spec.Containers[0].Args, " ")
}

func TestAnAdoptedRevisionIsOneOfHelms(t *testing.T) {
	t.Parallel()
	h := newHelmScene(t)
	h.install("tcp", map[string]any{"maxmemory": "32mb"})
	h.optIn("tcp")
	q := h.request("tcp", "maxmemory: 128mb")

	p, err := h.releases.Propose(t.Context(), q)
	if err != nil || len(p.Refused) > 0 || len(p.Canaries) != 1 || p.Canaries[0].Name != "tcp" || p.Digest == "" {
		t.Fatalf("%+v %v", p, err)
	}
	if got := h.args(); got != "--maxmemory 32mb" {
		t.Errorf("the proposal was applied: %s", got)
	}

	h.own(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "tcp"}}, `{"spec":{"selector":{"serin.dev/proxy":"tcp"}}}`)
	h.own(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "tcp"}}, `{"spec":{"paused":true}}`)
	for range 2 { // the second finds it done
		if err := h.releases.Adopt(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.args(); got != "--maxmemory 128mb" {
		t.Errorf("the Deployment has %s", got)
	}
	s, d := &corev1.Service{}, &appsv1.Deployment{}
	if err := errors.Join(admin.Get(t.Context(), h.key("tcp"), s), admin.Get(t.Context(), h.key("tcp"), d)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"app": "tcp", "serin.dev/proxy": "tcp"}, s.Spec.Selector); diff != "" || !d.Spec.Paused {
		t.Errorf("the upgrade took what Serin owns: %s, paused %v", diff, d.Spec.Paused)
	}
	if diff := cmp.Diff([]string{"superseded Install complete", "deployed Canary release try adopted"}, h.history("tcp")); diff != "" {
		t.Error(diff)
	}
	values, err := action.NewGetValues(h.person).Run("tcp")
	if diff := cmp.Diff(map[string]any{"maxmemory": "128mb"}, values); diff != "" || err != nil {
		t.Errorf("helm get values: %s %v", diff, err)
	}
	again, err := h.releases.Propose(t.Context(), q)
	if err != nil || again.Digest != p.Digest {
		t.Errorf("the digest was %s and is %s: %v", p.Digest, again.Digest, err)
	}

	// The Service is restored before a user goes on with server-side apply, to which
	// a selector is one field: with Serin's key in it there is a conflict.
	back := action.NewRollback(h.person)
	back.Version, back.WaitStrategy, back.ServerSideApply = 1, kube.HookOnlyStrategy, "auto"
	if err := back.Run("tcp"); err == nil || !strings.Contains(err.Error(), "conflict with \"serin\"") {
		t.Errorf("a server-side apply does not mind a key in a selector any more: %v", err)
	}
	h.own(s, `{"spec":{"selector":{"serin.dev/proxy":null}}}`)
	h.own(d, `{"spec":{"paused":null}}`)
	back = action.NewRollback(h.person)
	back.Version, back.WaitStrategy, back.ServerSideApply = 1, kube.HookOnlyStrategy, "auto"
	if err := back.Run("tcp"); err != nil {
		t.Fatal("helm rollback:", err)
	}
	if got := h.args(); got != "--maxmemory 32mb" {
		t.Errorf("after helm rollback the Deployment has %s", got)
	}
	if state, err := h.releases.Get(t.Context(), h.namespace, "tcp"); err != nil || state != (releases.Release{Newest: 4, Deployed: 4, Status: "deployed"}) {
		t.Errorf("a rollback counts as ours: %+v %v", state, err)
	}
	var invalid releases.InvalidError
	if err := h.releases.Adopt(t.Context(), q); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "revision 4 of release tcp was not made by this CanaryRelease") {
		t.Error(err)
	}
	// Whoever prefers server-side apply goes on with it.
	up := action.NewUpgrade(h.person)
	up.Namespace, up.WaitStrategy, up.ServerSideApply = h.namespace, kube.HookOnlyStrategy, "true"
	c, err := loader.LoadDir("../../controllers/canaryrelease/chart/testdata/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Run("tcp", c, map[string]any{"maxmemory": "64mb"}); err != nil {
		t.Fatal("helm upgrade --server-side=true:", err)
	}
}

func TestAnUpgradeThatWasBrokenOffIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHelmScene(t)
	h.install("tcp", nil)
	h.optIn("tcp")
	q := h.request("tcp", "maxmemory: 128mb")
	if err := h.releases.Adopt(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	h.mark("tcp", 1, rcommon.StatusDeployed)
	h.mark("tcp", 2, rcommon.StatusPendingUpgrade)
	if err := h.releases.Adopt(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := []string{"superseded Install complete", "failed Canary release try: interrupted, and tried again", "deployed Canary release try adopted"}
	if diff := cmp.Diff(want, h.history("tcp")); diff != "" {
		t.Error(diff)
	}
	h.upgrade("tcp", map[string]any{"maxmemory": "9mb"})
	h.mark("tcp", 4, rcommon.StatusPendingUpgrade)
	var invalid releases.InvalidError
	if err := h.releases.Adopt(t.Context(), q); !errors.As(err, &invalid) || !strings.HasPrefix(h.history("tcp")[3], "pending-upgrade") {
		t.Errorf("an upgrade of another user that is under way was touched: %v", err)
	}
}

// mark sets the status of a revision as a crash leaves it.
func (h *helmScene) mark(name string, revision int, status rcommon.Status) {
	h.Helper()
	stored, err := h.person.Releases.Get(name, revision)
	if err != nil {
		h.Fatal(err)
	}
	r := stored.(*helmrelease.Release)
	r.Info.Status = status
	if err := h.person.Releases.Update(r); err != nil {
		h.Fatal(err)
	}
}

func TestANamespaceThatGaveNoRightsTakesNoPart(t *testing.T) {
	t.Parallel()
	h := newHelmScene(t)
	h.install("tcp", nil)
	q := h.request("tcp", "maxmemory: 128mb")
	want := "ServiceAccount serin-canary of namespace " + h.namespace + " may not "
	_, getError := h.releases.Get(t.Context(), h.namespace, "tcp")
	_, proposeError := h.releases.Propose(t.Context(), q)
	for what, err := range map[string]error{
		"list secrets": getError, "get secrets": proposeError, "list secrets ": h.releases.Adopt(t.Context(), q),
	} {
		var invalid releases.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want+strings.TrimSpace(what)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Rights to read are enough for a proposal, and an adoption says what it lacks.
	h.create(
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: helmAccount},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "update"}},
				{APIGroups: []string{"", "apps"}, Resources: []string{"services", "deployments"}, Verbs: []string{"get"}},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: helmAccount},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: helmAccount},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: helmAccount, Namespace: h.namespace}},
		},
	)
	h.eventually("the rights are in force", func(ctx context.Context) bool {
		_, err := h.releases.Get(ctx, h.namespace, "tcp")
		return err == nil
	})
	if p, err := h.releases.Propose(t.Context(), q); err != nil || len(p.Canaries) != 1 {
		t.Errorf("%+v %v", p, err)
	}
	if err := h.releases.Adopt(t.Context(), q); err == nil || !strings.Contains(err.Error(), want+"patch deployments of apps") {
		t.Error(err)
	}
	if state, err := h.releases.Get(t.Context(), h.namespace, "tcp"); err != nil || state.Status != "failed" || state.Deployed != 1 {
		t.Errorf("%+v %v", state, err)
	}
}

func TestTemplatesLookAtTheCluster(t *testing.T) {
	t.Parallel()
	h := newHelmScene(t)
	h.install("lookup", nil)
	h.optIn("lookup")
	p, err := h.releases.Propose(t.Context(), h.request("lookup", "tag: '2'"))
	if err != nil || len(p.Refused) > 0 || len(p.Canaries) != 1 || p.Canaries[0].Rolls {
		t.Errorf("%+v %v", p, err)
	}
	p, err = h.releases.Propose(t.Context(), h.request("lookup", "{tag: '2', keep: false}"))
	if err != nil || len(p.Refused) != 1 || !strings.Contains(p.Refused[0], "is rendered differently each time") {
		t.Errorf("%+v %v", p, err)
	}
}
