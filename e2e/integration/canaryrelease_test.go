// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease"
	"github.com/serin-dev/serin/controllers/canaryrelease/child"
)

// canaryPods are the replicas of the Deployments whose releases are tried.
const canaryPods = 3

// canaryOptions are those of the operator's CanaryReleases, under the rights of cfg.
func canaryOptions(t *testing.T, cfg *rest.Config) canaryrelease.Options {
	t.Helper()
	return canaryrelease.Options{
		Live: admin, Releases: child.New(cfg, child.Options{Program: helmProgram(t), Account: helmAccount}), Account: helmAccount, Measurements: constant{}, Clock: clock.RealClock{}, Concurrency: 2,
		As: func(namespace string) (client.Client, error) {
			as := rest.CopyConfig(cfg)
			as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + helmAccount}
			return client.New(as, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
		},
	}
}

// addCanaryReleases adds the controller of CanaryReleases to an operator.
func addCanaryReleases(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	r := canaryrelease.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManagerCanaryRelease), canaryOptions(t, mgr.GetConfig()))
	if err := r.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
}

// constant is traffic of a kind: no proxy runs here that could count any.
type constant struct{}

func (constant) Measure(context.Context, types.NamespacedName, analysis.Subject, analysis.Weight) error {
	return nil
}

func (constant) Forget(types.NamespacedName) {}

func (constant) Windows(types.NamespacedName, time.Time) ([]analysis.Window, analysis.Health) {
	begin := time.Now().Add(time.Second) // not before the weights were seen
	return []analysis.Window{{Start: begin, End: begin.Add(15 * time.Second), Stable: analysis.Variant{Requests: 99, Failures: 1}}}, analysis.Health{}
}

// canaryStage is a namespace with a Helm release that is tried. TrafficSplits are served by
// an operator that runs all the time.
type canaryStage struct {
	*helmScene
	// chart is the name of the release too, and of its Deployment and Service.
	chart string
	// pass is one look of an operator that was started for it. It is nil where the operator
	// that runs has CanaryReleases too.
	pass func()
	// ahead is how far the clock of each pass is ahead of the real one.
	ahead time.Duration
}

func newCanaryStage(t *testing.T, chart string, see ...func(*sight)) *canaryStage {
	t.Helper()
	p := &canaryStage{helmScene: newHelmScene(t), chart: chart}
	p.install(chart, nil)
	p.optIn(chart)
	change(p.scene, chart, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(canaryPods)) })
	p.eventually("the release is available", func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		return admin.Get(ctx, p.key(chart), d) == nil && d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == canaryPods
	})
	p.serveProxies()
	p.startOperator(newMeasurements(), see...)
	return p
}

// restarted is a stage whose operator begins anew with each pass, and so remembers nothing.
func restarted(t *testing.T, chart string) *canaryStage {
	t.Helper()
	p := newCanaryStage(t, chart)
	cfg := managerConfig(t)
	c, err := client.New(cfg, client.Options{Scheme: newScheme(), Mapper: admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	p.pass = func() {
		t.Helper()
		o := canaryOptions(t, cfg)
		o.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(p.ahead))
		r := canaryrelease.New(c, events.NewFakeRecorder(100), o)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: p.key("try")}); err != nil {
			t.Fatalf("%v; it says %s", err, p.said())
		}
	}
	return p
}

func (p *canaryStage) canary() *v1alpha1.CanaryRelease {
	p.Helper()
	return p.get(p.Context(), "try", &v1alpha1.CanaryRelease{}).(*v1alpha1.CanaryRelease)
}

func (p *canaryStage) said() string {
	cr := &v1alpha1.CanaryRelease{}
	if err := admin.Get(context.WithoutCancel(p.Context()), p.key("try"), cr); err != nil {
		return err.Error()
	}
	return dump(cr.Status)
}

// until lets the operator look again and again until the status is as wanted.
func (p *canaryStage) until(what string, wanted func(s *v1alpha1.CanaryReleaseStatus) bool) *v1alpha1.CanaryRelease {
	p.Helper()
	var cr *v1alpha1.CanaryRelease
	found := p.poll(func(context.Context) bool {
		if p.pass != nil {
			p.pass()
		}
		cr = p.canary()
		return cr.Status.ObservedGeneration == cr.Generation && wanted(&cr.Status)
	})
	if !found {
		p.Fatalf("never: %s; it says %s", what, p.said())
	}
	return cr
}

func reasonIs(reason string) func(*v1alpha1.CanaryReleaseStatus) bool {
	return func(s *v1alpha1.CanaryReleaseStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == reason
	}
}

func hasEnded(s *v1alpha1.CanaryReleaseStatus) bool {
	return s.Decision != nil && s.Decision.EndedAt != nil
}

// try makes the CanaryRelease and waits until it gets its traffic.
func (p *canaryStage) try(config string) *v1alpha1.CanaryRelease {
	p.Helper()
	p.create(&v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Name: "try"},
		Spec:       v1alpha1.CanaryReleaseSpec{Release: p.chart, Version: 1, Config: config},
	})
	return p.until("the canary is served", reasonIs(v1alpha1.ReasonServing))
}

func (p *canaryStage) edit(f func(*v1alpha1.CanaryReleaseSpec)) {
	p.Helper()
	change(p.scene, "try", &v1alpha1.CanaryRelease{}, func(cr *v1alpha1.CanaryRelease) { f(&cr.Spec) })
}

// weigh gives the only port of the only Service a weight, and waits until that is in effect.
func (p *canaryStage) weigh(port, weight int32) {
	p.Helper()
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) {
		s.Services = []v1alpha1.CanaryService{{Service: p.chart, Ports: []v1alpha1.CanaryPort{{Port: port, Config: v1alpha1.CanaryPortConfig{Weight: &weight}}}}}
	})
	p.until("the weight is in effect", func(s *v1alpha1.CanaryReleaseStatus) bool {
		return reasonIs(v1alpha1.ReasonServing)(s) && len(s.Services) == 1 && s.Services[0].Programmed && s.Services[0].Ports[0].Weight == weight
	})
	split := p.get(p.Context(), p.chart, &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit)
	var canary, all int32
	for _, b := range split.Status.Backends {
		all += b.Weight
		if b.Service == p.chart+"-canary" {
			canary = b.Weight
		}
	}
	if all == 0 || canary*100 != weight*all {
		p.Errorf("the split gives the canary %d of %d, not %d %%", canary, all, weight)
	}
}

// things are what a person would compare, without what the cluster writes into it. Pods and
// proxies come and go.
func (p *canaryStage) things() map[string]string {
	p.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &splitv1.TrafficSplitList{}, &appsv1.DeploymentList{}} {
		if err := admin.List(p.Context(), list, client.InNamespace(p.namespace)); err != nil {
			p.Fatal(err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			name := o.(client.Object).GetName()
			if !strings.HasPrefix(name, "sh.helm.") && !strings.HasPrefix(name, "serin-proxy-") {
				out[fmt.Sprintf("%T/%s", o, name)] = content(p, o)
			}
			return nil
		}); err != nil {
			p.Fatal(err)
		}
	}
	return out
}

// content is what somebody wrote into an object.
func content(p *canaryStage, o any) string {
	p.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		p.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		p.Fatal(err)
	}
	return string(fields["spec"]) + string(fields["data"])
}

// versions are the pods of the release by the arguments of their containers, or their
// variables' sources.
func (p *canaryStage) versions() map[string][]string {
	p.Helper()
	list := &corev1.PodList{}
	if err := admin.List(p.Context(), list, client.InNamespace(p.namespace), client.MatchingLabels{"app": p.chart}); err != nil {
		p.Fatal(err)
	}
	out := map[string][]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && !strings.HasPrefix(pod.Name, "serin-proxy-") {
			key := strings.Join(pod.Spec.Containers[0].Args, " ")
			out[key] = append(out[key], string(pod.UID))
		}
	}
	for _, uids := range out {
		slices.Sort(uids)
	}
	return out
}

func TestAnOperatorThatBeginsAnewEachTimeServesACanaryAndTakesItOut(t *testing.T) {
	t.Parallel()
	p := restarted(t, "hpa")
	before := p.things()
	cr := p.try("color: red\npassword: changed")
	if len(cr.Status.Copies) != 2 || len(cr.Status.Workloads) != 1 || cr.Status.Workloads[0].ReadyReplicas != 1 {
		t.Errorf("it says %s", dump(cr.Status))
	}
	if got := p.until("traffic is told", func(s *v1alpha1.CanaryReleaseStatus) bool {
		return len(s.Services) == 1 && s.Services[0].Traffic != nil
	}).Status.Services[0].Traffic; got.Stable.Requests != 99 || got.Stable.Failures != 1 || got.Canary.Requests != 0 {
		t.Errorf("it says %s", dump(got))
	}
	for _, weight := range []int32{50, 0, 100, 20} {
		p.weigh(80, weight)
	}
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionDeprecated })
	ended := p.until("it is taken out", hasEnded)
	if diff := cmp.Diff(before, p.things()); diff != "" {
		t.Errorf("it is not as before (-before +after):\n%s", diff)
	}
	if len(ended.Status.Workloads)+len(ended.Status.Copies)+len(ended.Finalizers) > 0 || !reasonIs(v1alpha1.ReasonDeprecated)(&ended.Status) {
		t.Errorf("it says %s", dump(ended.Status))
	}
	for range 3 {
		p.pass()
	}
	if again := p.canary(); again.ResourceVersion != ended.ResourceVersion {
		t.Errorf("it is written after the end: %s", dump(again.Status))
	}
}

func TestAnOperatorThatBeginsAnewEachTimeAdoptsThePodsThatWereTried(t *testing.T) {
	t.Parallel()
	p := restarted(t, "tcp")
	before := p.things()
	p.try("maxmemory: 128mb")
	p.weigh(6379, 60)
	tried := p.versions()["--maxmemory 128mb"]
	if len(tried) != 2 {
		t.Fatalf("the canary has the pods %v", tried)
	}
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
	cr := p.until("it is adopted", hasEnded)
	if r := cr.Status.Release; r.AdoptedRevision != 2 || !cr.Status.Workloads[0].HandedOver || cr.Status.Workloads[0].Rolled != "" {
		t.Errorf("it says %s", dump(cr.Status))
	}
	if diff := cmp.Diff([]string{"superseded Install complete", "deployed Canary release try adopted"}, p.history("tcp")); diff != "" {
		t.Error(diff)
	}
	p.eventually("the old pods are gone", func(context.Context) bool { return len(p.versions()) == 1 })
	now := p.versions()["--maxmemory 128mb"]
	if len(now) != canaryPods || !slices.Contains(now, tried[0]) || !slices.Contains(now, tried[1]) {
		t.Errorf("the pods are %v, and those that were tried %v", now, tried)
	}
	after := p.things()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("other objects are there (-before +after):\n%s", diff)
	}
	if d := p.get(t.Context(), "tcp", &appsv1.Deployment{}).(*appsv1.Deployment); d.Spec.Paused || p.args() != "--maxmemory 128mb" {
		t.Errorf("paused %v, with %s", d.Spec.Paused, p.args())
	}
}

func TestAnOperatorThatBeginsAnewEachTimeAdoptsACanaryThatReadsCopies(t *testing.T) {
	t.Parallel()
	p := restarted(t, "hpa")
	before := slices.Sorted(maps.Keys(p.things()))
	p.try("color: red")
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
	cr := p.until("it is adopted", hasEnded)
	if w := cr.Status.Workloads[0]; w.HandedOver || !strings.Contains(w.Rolled, "copies") || cr.Status.Release.AdoptedRevision != 2 {
		t.Errorf("it says %s", dump(cr.Status))
	}
	if diff := cmp.Diff(before, slices.Sorted(maps.Keys(p.things()))); diff != "" {
		t.Errorf("other objects are there (-before +after):\n%s", diff)
	}
	if c := p.get(t.Context(), "hpa-settings", &corev1.ConfigMap{}).(*corev1.ConfigMap); c.Data["color"] != "red" {
		t.Errorf("the release has %v", c.Data)
	}
}

func TestAnOperatorThatBeginsAnewEachTimeDoesNotCallHelmAgainAndAgain(t *testing.T) {
	t.Parallel()
	p := restarted(t, "tcp")
	p.try("maxmemory: 128mb")
	p.mayNotUpgrade()
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionAdopted })
	p.until("the upgrade fails", reasonIs(v1alpha1.ReasonUpgradeFailed))
	for range 5 {
		p.pass()
	}
	cr := p.canary()
	if r := cr.Status.Release; len(p.history("tcp")) != 2 || r.UpgradeTries != 1 || r.LastTryAt == nil {
		t.Errorf("Helm has %v; it says %s", p.history("tcp"), dump(cr.Status))
	}
	p.revoke()
	p.optIn(p.chart)
	p.waitAdmin(true)
	p.ahead = time.Minute
	cr = p.until("it is adopted later", hasEnded)
	if r := cr.Status.Release; r.AdoptedRevision != 3 || r.UpgradeTries != 0 || len(p.history("tcp")) != 3 {
		t.Errorf("Helm has %v; it says %s", p.history("tcp"), dump(cr.Status))
	}
}

// mayNotUpgrade leaves the ServiceAccount the rights that a proposal needs.
func (p *canaryStage) mayNotUpgrade() {
	p.Helper()
	p.revoke()
	p.create(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: helmAccount}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "update"}},
			{APIGroups: []string{"", "apps"}, Resources: []string{"services", "deployments"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: helmAccount},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: helmAccount},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: helmAccount, Namespace: p.namespace}},
		},
	)
	p.waitAdmin(false)
}

// revoke takes the ServiceAccount away, with its rights.
func (p *canaryStage) revoke() {
	p.Helper()
	for _, o := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}} {
		o.SetNamespace(p.namespace)
		o.SetName(helmAccount)
		if err := client.IgnoreNotFound(admin.Delete(p.Context(), o)); err != nil {
			p.Fatal(err)
		}
	}
}

// waitAdmin waits until the API server has taken notice of what the ServiceAccount may do.
func (p *canaryStage) waitAdmin(want bool) {
	p.Helper()
	user := "system:serviceaccount:" + p.namespace + ":" + helmAccount
	p.eventually("the rights are in force", func(ctx context.Context) bool {
		got, err := allowed(ctx, user, p.namespace, deleteSecrets)
		return err == nil && got == want
	})
}

// deleteSecrets is what an admin of a namespace may do.
var deleteSecrets = may{"delete", "secrets", ""}

func TestWithoutTheServiceAccountTheCopiesAreLeftUntilItIsBack(t *testing.T) {
	t.Parallel()
	p := restarted(t, "hpa")
	before := p.things()
	p.try("color: red")
	p.revoke()
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionDeprecated })
	cr := p.until("a person is asked", func(s *v1alpha1.CanaryReleaseStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)
	})
	message := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady).Message
	if want := "ServiceAccount serin-canary of namespace " + p.namespace + " may not get configmaps"; !strings.Contains(message, want) || !strings.Contains(message, "the ConfigMap "+cr.Status.Copies[0].Name) {
		t.Errorf("it says %q", message)
	}
	if left := p.things(); len(left) != len(before)+len(cr.Status.Copies) {
		t.Errorf("what needs no ServiceAccount is left: %v", slices.Sorted(maps.Keys(left)))
	}
	p.optIn(p.chart)
	p.until("it goes on by itself", hasEnded)
	if diff := cmp.Diff(before, p.things()); diff != "" {
		t.Errorf("it is not as before (-before +after):\n%s", diff)
	}
}

func TestAnOperatorThatRunsServesCanariesWithTheRightsOfTheChart(t *testing.T) {
	t.Parallel()
	p := newCanaryStage(t, "tcp", withCanaries)
	before := p.things()
	p.try("maxmemory: 128mb")
	harmful := p.tryHarmful()
	p.weigh(6379, 40)
	p.edit(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = v1alpha1.CanaryTransitionDeprecated })
	p.until("it is taken out", hasEnded)
	harmful()
	if diff := cmp.Diff(before, p.things()); diff != "" {
		t.Errorf("it is not as before (-before +after):\n%s", diff)
	}
}

// tryHarmful makes a CanaryRelease whose chart takes all memory that there is, and waits until
// its status names the limit. It returns what removes the chart.
func (p *canaryStage) tryHarmful() (remove func()) {
	p.Helper()
	const name = "doubling"
	p.install(name, nil)
	p.create(&v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.CanaryReleaseSpec{Release: name, Version: 1, Config: "times: 60"},
	})
	p.eventually("the limit is named", func(ctx context.Context) bool {
		ready := meta.FindStatusCondition(p.get(ctx, name, &v1alpha1.CanaryRelease{}).(*v1alpha1.CanaryRelease).Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status != metav1.ConditionTrue && strings.Contains(ready.Message, "Helm needs more memory than its limit of 160 MiB")
	})
	return func() {
		p.Helper()
		un := action.NewUninstall(p.person)
		un.WaitStrategy = kube.HookOnlyStrategy
		if _, err := un.Run(name); err != nil {
			p.Fatal(err)
		}
	}
}
