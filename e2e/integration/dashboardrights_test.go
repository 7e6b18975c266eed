// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/identities"
)

// viewer is a user with a dashboard, and with the API of the cluster by the same credentials.
type viewer struct {
	*scene
	page *http.Client
	// base is where the page is, with a slash at the end.
	base   string
	config *rest.Config
	api    client.Client
}

// newViewer is one whose credentials are those of a configuration.
func (s *scene) newViewer(page *http.Client, base string, config *rest.Config) *viewer {
	s.Helper()
	api, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	if err != nil {
		s.Fatal(err)
	}
	return &viewer{s, page, base, config, api}
}

// commanded is a user of kubectl traffic dashboard.
func (s *scene) commanded(user string) *viewer {
	s.Helper()
	address, _ := s.serveDashboard(user)
	at, err := url.Parse(address)
	if err != nil {
		s.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	v := s.newViewer(&http.Client{Jar: jar}, "http://"+at.Host+"/", config)
	answer, err := v.page.Get(address)
	if err != nil {
		s.Fatal(err)
	}
	answer.Body.Close()
	return v
}

// loggedIn is a user who has logged in to the dashboard in the cluster at the provider.
func (s *scene) loggedIn(d *site, user string) *viewer {
	s.Helper()
	browser := (&site{scene: s, url: d.url}).visitor(user)
	if answer := browser.login(); answer.StatusCode != http.StatusOK {
		s.Fatalf("the login of %s: status %d", user, answer.StatusCode)
	}
	config := rest.AnonymousClientConfig(plane.Config)
	config.BearerToken = d.token()
	return s.newViewer(browser.http, d.url, config)
}

func (v *viewer) request(ctx context.Context, method, path, body string) *http.Response {
	v.Helper()
	r, err := http.NewRequestWithContext(ctx, method, v.base+path, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := v.page.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	return answer
}

// send sends a request that is answered at once.
func (v *viewer) send(method, path, body string) (status int, text []byte) {
	v.Helper()
	answer := v.request(v.Context(), method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer.StatusCode, text
}

// told is what a stream of the page has told, of all kinds of events.
type told struct {
	Rows     []json.RawMessage
	Complete bool
	Trouble  *struct{ Kind string }
	Missing  any // a sentence, or several
	Release  *object
	Canary   *object
}

// object is what the pages of one object have in common.
type object struct {
	Actions []struct{ Name, Disabled string }
	Missing []string
}

// hear listens to a stream until an event fits.
func (v *viewer) hear(what, path string, fits func(event string, t told) bool) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), neverAfter)
	defer cancel()
	body := v.request(ctx, http.MethodGet, path, "").Body
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	event, last := "", ""
	for lines.Scan() {
		if name, found := strings.CutPrefix(lines.Text(), "event: "); found {
			event = name
		}
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var t told
		if err := json.Unmarshal([]byte(data), &t); err != nil {
			v.Fatalf("%s: %v in %s", path, err, data)
		}
		if last = data; fits(event, t) {
			return
		}
	}
	v.Fatalf("%s: never %s; the last event: %s", path, what, last)
}

// can is what kubectl auth can-i says about a right in the namespace, written as a verb, a
// resource such as pods or deployments.metrics.smi-spec.io/edges, and the name of an object if
// it is about one.
func (v *viewer) can(right string) bool {
	v.Helper()
	words := append(strings.Fields(right), "")
	of := &authorizationv1.ResourceAttributes{Namespace: v.namespace, Verb: words[0], Name: words[2]}
	of.Resource, of.Subresource, _ = strings.Cut(words[1], "/")
	if of.Resource, of.Group, _ = strings.Cut(of.Resource, "."); of.Resource == "freezes" {
		of.Namespace = "" // they are of the whole cluster
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: of}}
	if err := v.api.Create(v.Context(), review); err != nil {
		v.Fatal(err)
	}
	return review.Status.Allowed
}

// all is whether the user has all rights.
func (v *viewer) all(rights ...string) bool {
	v.Helper()
	return !slices.ContainsFunc(rights, func(right string) bool { return !v.can(right) })
}

// allowed is whether the API server lets a request of the user through.
func (v *viewer) allowed(what string, err error) bool {
	v.Helper()
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		v.Errorf("%s by the API: %v", what, err)
	}
	return !apierrors.IsForbidden(err)
}

// measures is whether the API server lets the user read TrafficMetrics.
func (v *viewer) measures(path string) bool {
	v.Helper()
	api, err := kubernetes.NewForConfig(v.config)
	if err != nil {
		v.Fatal(err)
	}
	return v.allowed(path, api.RESTClient().Get().AbsPath("/apis/metrics.smi-spec.io/v1alpha1/namespaces/"+v.namespace+path).Do(v.Context()).Error())
}

// same compares what the page lets the user do with kubectl auth can-i and the API.
func (v *viewer) same(what string, page, canI, api bool) {
	v.Helper()
	if page != canI || page != api {
		v.Errorf("%s: by the page %t, by kubectl auth can-i %t, by the API %t", what, page, canI, api)
	}
}

// reads compares what the pages show.
func (v *viewer) reads() {
	v.Helper()
	in := client.InNamespace(v.namespace)
	listed := map[string]client.ObjectList{"rollouts.serin.dev": &v1alpha1.RolloutList{}, "trafficsplits.split.smi-spec.io": &splitv1.TrafficSplitList{}, "canaryreleases.serin.dev": &v1alpha1.CanaryReleaseList{}}
	for page, resource := range map[string]string{"fleet": "rollouts.serin.dev", "traffic": "trafficsplits.split.smi-spec.io", "canaries": "canaryreleases.serin.dev"} {
		var shown bool
		v.hear("rows, or why there are none", "api/"+page+"?namespace="+v.namespace, func(_ string, t told) bool {
			shown = t.Complete && len(t.Rows) > 0
			return shown || t.Trouble != nil && t.Trouble.Kind == "forbidden"
		})
		v.same(page, shown, v.all("list "+resource, "watch "+resource), v.allowed(page, v.api.List(v.Context(), listed[resource], in)))
	}
	status, text := v.send(http.MethodGet, "api/calendar?namespace="+v.namespace, "")
	v.same("calendar", status == http.StatusOK, v.can("list rollouts.serin.dev"), v.allowed("calendar", v.api.List(v.Context(), &v1alpha1.RolloutList{}, in)))
	if status == http.StatusOK {
		v.same("Freezes in the calendar", !bytes.Contains(text, []byte("The Freezes are left out")), v.can("list freezes.serin.dev"), v.allowed("Freezes", v.api.List(v.Context(), &v1alpha1.FreezeList{})))
	}
	if status != http.StatusOK && bytes.Contains(text, []byte(`"website"`)) {
		v.Errorf("the calendar that is refused names a Rollout: %s", text)
	}
	status, text = v.send(http.MethodPost, "api/rollouts/"+v.namespace+"/website/what-if", "{}")
	if status != http.StatusForbidden && status != http.StatusNotFound { // there is no recording
		v.Errorf("what if: status %d, %s", status, text)
	}
	v.same("what if", status != http.StatusForbidden, v.all("get rollouts.serin.dev", "get analysisresults.serin.dev"), v.allowed("what if", v.api.Get(v.Context(), v.key("website"), &v1alpha1.AnalysisResult{})))
	v.parts()
	v.traffic()
}

// parts compares what the pages of one object show beside it.
func (v *viewer) parts() {
	v.Helper()
	in := client.InNamespace(v.namespace)
	for kind, path := range map[string]string{"rollouts": "api/rollouts/" + v.namespace + "/website", "canaryreleases": "api/canaries/" + v.namespace + "/bigger-cache"} {
		var seen *object
		v.hear("the object, or why it is not shown", path, func(_ string, t told) bool {
			if seen = t.Release; seen == nil {
				seen = t.Canary
			}
			return seen != nil || t.Trouble != nil && t.Trouble.Kind == "forbidden"
		})
		get := map[string]client.Object{"rollouts": &v1alpha1.Rollout{}, "canaryreleases": &v1alpha1.CanaryRelease{}}[kind]
		v.same("one of "+kind, seen != nil, v.all("list "+kind+".serin.dev", "watch "+kind+".serin.dev"), v.allowed(kind, v.api.Get(v.Context(), v.key(path[strings.LastIndex(path, "/")+1:]), get)))
		if seen == nil {
			continue
		}
		has := func(part string) bool {
			return !slices.ContainsFunc(seen.Missing, func(m string) bool { return strings.HasPrefix(m, part+" can't be read") })
		}
		v.same("events of "+kind, has("The events"), v.can("list events"), v.allowed("events", v.api.List(v.Context(), &corev1.EventList{}, in)))
		if !has("Your rights") {
			v.Errorf("%s: a user may ask for their rights", kind)
		}
		if kind != "rollouts" {
			continue
		}
		v.same("pods", has("The pods"), v.all("list pods", "list replicasets.apps"), v.allowed("pods", v.api.List(v.Context(), &corev1.PodList{}, in)))
		v.same("Freezes", has("The Freezes"), v.can("list freezes.serin.dev"), v.allowed("Freezes", v.api.List(v.Context(), &v1alpha1.FreezeList{})))
		v.same("recordings", has("The recordings"), v.can("get analysisresults.serin.dev"), v.allowed("recordings", v.api.Get(v.Context(), v.key("website"), &v1alpha1.AnalysisResult{})))
	}
}

// traffic compares what the pages show of TrafficMetrics.
func (v *viewer) traffic() {
	v.Helper()
	var shown bool
	v.hear("calls, or why there are none", "api/calls?namespace="+v.namespace, func(_ string, t told) bool {
		shown = t.Missing == nil
		return true
	})
	v.same("calls", shown, v.all("list deployments.metrics.smi-spec.io", "get deployments.metrics.smi-spec.io/edges"),
		v.measures("/deployments") && v.measures("/deployments/website/edges"))
	if !v.can("list trafficsplits.split.smi-spec.io") {
		return // there is no row that could have a share
	}
	v.hear("measured shares, or why there are none", "api/traffic?namespace="+v.namespace, func(event string, t told) bool {
		shown = slices.ContainsFunc(t.Rows, func(row json.RawMessage) bool { return bytes.Contains(row, []byte(`"measured":`)) })
		return shown || event == "measured" && t.Missing != nil
	})
	v.same("measured shares", shown, v.can("list trafficsplits.metrics.smi-spec.io"), v.measures("/trafficsplits"))
}

// button is something that the page does when a user presses a button.
type button struct {
	name string
	// step, counted from 1, that the question names.
	step int
	// can is whether the user has the rights that it takes, as kubectl auth can-i knows them.
	can func(v *viewer) bool
	// patch is what the button writes, in short.
	patch string
}

func decides(object string) func(v *viewer) bool {
	return func(v *viewer) bool { return v.all("promote "+object, "patch "+object) }
}

// mayPause follows the policy by which those who may promote and not update do nothing else.
func mayPause(v *viewer) bool {
	const website = " rollouts.serin.dev website"
	return v.can("patch"+website) && (v.can("update"+website) || !v.can("promote"+website))
}

// press compares a button of an object, what it does, and the same write without the page.
func (v *viewer) press(b button, path, revision string, write func() error) {
	v.Helper()
	canI := b.can(v)
	api := v.allowed(b.name, write())
	if v.can("list " + resourceOf(path)) {
		v.hear(fmt.Sprintf("the button %s, possible: %t", b.name, canI), path, func(_ string, t told) bool {
			seen := t.Release
			if seen == nil {
				seen = t.Canary
			}
			return seen != nil && slices.ContainsFunc(seen.Actions, func(a struct{ Name, Disabled string }) bool { return a.Name == b.name && (a.Disabled == "") == canI })
		})
	}
	body := fmt.Sprintf(`{"action":%q,"revision":%q,"step":%d,"reason":""}`, b.name, revision, b.step)
	status, text := v.send(http.MethodPost, path+"/actions", body)
	if status != http.StatusOK && status != http.StatusForbidden {
		v.Errorf("%s: status %d, %s", b.name, status, text)
	}
	v.same(b.name, status == http.StatusOK, canI, api)
}

func resourceOf(path string) string {
	if strings.HasPrefix(path, "api/canaries/") {
		return "canaryreleases.serin.dev"
	}
	return "rollouts.serin.dev"
}

// There is one TrafficMetrics API in a cluster, so that this test runs alone.
func TestThePageDoesWhatKubectlDoesWithTheSameCredentials(t *testing.T) {
	s := team(t, signed)
	s.bindClusterRole("reader", "view")
	addPromoter(s)
	s.waitRights("reader", may{"watch", "rollouts", ""})
	s.create(newRollout(), deployment("website", 1))
	s.birds()
	installTraffic(t)
	source := &flowing{namespace: s.namespace}
	source.canary.Store(200)
	serveTraffic(t, source).join(t)
	serving(t)
	stable := s.firstRevision()
	d := s.serveSite(identities.ClusterClient)
	for _, user := range []string{"reader", "editor", "oncall", "promoter", "admin", "stranger"} {
		for way, open := range map[string]func(s *scene) *viewer{
			"kubectl traffic dashboard": func(s *scene) *viewer { return s.commanded(user) },
			"the login":                 func(s *scene) *viewer { return s.loggedIn(d, user) },
		} {
			t.Run(user+" by "+way, func(t *testing.T) {
				s := &scene{T: t, namespace: s.namespace, reader: admin}
				s.recreateCache()
				v := open(s)
				v.reads()
				s.pressAll(v, stable)
			})
		}
	}
}

// firstRevision waits until the Deployment has one.
func (s *scene) firstRevision() string {
	s.Helper()
	var sets appsv1.ReplicaSetList
	s.eventually("the Deployment has a ReplicaSet", func(ctx context.Context) bool {
		return admin.List(ctx, &sets, client.InNamespace(s.namespace)) == nil && len(sets.Items) == 1
	})
	return sets.Items[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// recreateCache makes the CanaryRelease anew: a decision about one is final.
func (s *scene) recreateCache() *v1alpha1.CanaryRelease {
	s.Helper()
	old := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "bigger-cache", Namespace: s.namespace}}
	if err := admin.Delete(s.Context(), old); client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return s.cache()
}

const canaryOfTest = "7f9c6d5b4"

// pressAll presses each button, each time as if none had been pressed before.
func (s *scene) pressAll(v *viewer, stable string) {
	s.Helper()
	website := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}
	workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}
	merge := func(api client.Client, o client.Object, patch string, options ...client.PatchOption) error {
		return api.Patch(s.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
	}
	control := func(action string) string {
		return fmt.Sprintf(`{"spec":{"control":{"revision":%q,"action":%q,"by":null}}}`, canaryOfTest, action)
	}
	decide := decides("rollouts.serin.dev website")
	for _, b := range []button{
		{"Promote", 2, decide, control("Promote")},
		{"Skip", 2, decide, control("Skip")},
		{"PromoteFull", 0, decide, control("PromoteFull")},
		{"Abort", 0, decide, control("Abort")},
		{"Retry", 0, decide, control("Retry")},
		{"Pause", 0, mayPause, `{"spec":{"paused":true}}`},
		{"Resume", 0, mayPause, `{"spec":{"paused":false}}`},
		{"Undo", 0, func(v *viewer) bool { return v.all("patch deployments.apps", "get replicasets.apps") }, `{"metadata":{"annotations":{"example.org/undone":"true"}}}`},
	} {
		of, revision := client.Object(website), canaryOfTest
		if b.name == "Undo" {
			of, revision = workload, stable
		}
		paused := b.name == "Resume"
		if err := merge(admin, website, fmt.Sprintf(`{"spec":{"paused":%t,"control":null}}`, paused)); err != nil {
			s.Fatal(err)
		}
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"app","image":"`+imageV2+`"}]}}}}`))
		if err := admin.Patch(s.Context(), workload.DeepCopy(), patch); err != nil {
			s.Fatal(err)
		}
		s.status("website", releasing(stable, canaryOfTest))
		if b.name == "Retry" {
			s.status("website", func(status *v1alpha1.RolloutStatus) {
				status.Decision = &v1alpha1.Decision{Revision: canaryOfTest, Action: v1alpha1.ActionRollBack, Reason: "Aborted", Time: metav1.NowMicro()}
			})
		}
		v.press(b, "api/rollouts/"+s.namespace+"/website", revision, func() error { return merge(v.api, of, b.patch, client.DryRunAll) })
	}
	for _, transition := range []string{"Adopted", "Deprecated"} {
		cr := s.recreateCache()
		b := button{transition, 0, decides("canaryreleases.serin.dev bigger-cache"), fmt.Sprintf(`{"spec":{"transition":%q}}`, transition)}
		v.press(b, "api/canaries/"+s.namespace+"/"+cr.Name, strconv.FormatInt(cr.Generation, 10), func() error { return merge(v.api, cr, b.patch, client.DryRunAll) })
	}
}
