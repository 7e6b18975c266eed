// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// website is a Rollout in the middle of a release.
func website() *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}}
	ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20}}
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "website"}
	ro.Status.Stable = &v1alpha1.VersionStatus{Revision: "stable1"}
	ro.Status.Canary = &v1alpha1.VersionStatus{Revision: "canary2"}
	ro.Status.Step = &v1alpha1.StepStatus{Index: 0, Of: 1, Summary: "1/1"}
	return ro
}

// cluster is one that allows everything.
func cluster(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Create: allow("jane", "promote", "patch", "update", "get")})
}

// allow answers reviews: a user has these verbs.
func allow(user string, verbs ...string) func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
	return func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
		switch review := o.(type) {
		case *authenticationv1.SelfSubjectReview:
			review.Status.UserInfo.Username = user
		case *authorizationv1.SelfSubjectAccessReview:
			review.Status.Allowed = slices.Contains(verbs, review.Spec.ResourceAttributes.Verb)
		default:
			return api.Create(ctx, o, options...)
		}
		return nil
	}
}

// watching is a client that tells of each watch that has begun. The API of these tests, other than
// an API server, does not send what happened between a list and its watch, so that a test that
// changes something waits for the watch.
func watching(api client.WithWatch) (client.WithWatch, <-chan struct{}) {
	begun := make(chan struct{}, 10)
	return interceptor.NewClient(api, interceptor.Funcs{Watch: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		seen, err := api.Watch(ctx, list, options...)
		begun <- struct{}{}
		return seen, err
	}}), begun
}

// viewers has the viewers by the value of a header.
type viewers map[string]*dashboard.Viewer

func (v viewers) Viewer(r *http.Request) (*dashboard.Viewer, error) {
	if viewer := v[r.Header.Get("Authorization")]; viewer != nil {
		return viewer, nil
	}
	return nil, errors.New("the request has no login")
}

// listener listens to a stream.
type listener struct {
	*testing.T
	lines *bufio.Scanner
	// unread are events that came while another was waited for, by their name: nothing says
	// in which order events of two names come.
	unread map[string][]string
}

// eventLimit ends a test that waits for an event that does not come, so that it says so.
const eventLimit = 2 * time.Minute

// listen opens a stream as a viewer.
func listen(t *testing.T, v viewers, user, path string) *listener {
	t.Helper()
	return listenAt(t, clock.RealClock{}, v, user, path)
}

func listenAt(t *testing.T, c clock.WithTicker, v viewers, user, path string) *listener {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = dashboard.NewHandler(dashboard.Options{Viewers: v, Origins: []string{"http://" + server.Listener.Addr().String()}, Clock: c})
	server.Start()
	ctx, cancel := context.WithTimeout(t.Context(), eventLimit)
	t.Cleanup(func() { cancel(); server.Close() })
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", user)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &listener{t, lines, map[string][]string{}}
}

// until reads events of a name until one fits.
func until[V any](l *listener, event string, fits func(V) bool) V {
	l.Helper()
	for {
		var value V
		if err := json.Unmarshal([]byte(l.next(event)), &value); err != nil {
			l.Fatal(err)
		}
		if fits(value) {
			return value
		}
	}
}

// next is the next event of a name.
func (l *listener) next(event string) string {
	l.Helper()
	for name := ""; len(l.unread[event]) == 0; {
		if !l.lines.Scan() {
			l.Fatalf("the stream ended before the event %s: %v", event, l.lines.Err())
		}
		if after, ok := strings.CutPrefix(l.lines.Text(), "event: "); ok {
			name = after
		} else if data, ok := strings.CutPrefix(l.lines.Text(), "data: "); ok {
			l.unread[name] = append(l.unread[name], data)
		}
	}
	first := l.unread[event][0]
	l.unread[event] = l.unread[event][1:]
	return first
}

type rows struct {
	Rows     []view.Row `json:"rows"`
	Gone     []string   `json:"gone"`
	Complete bool       `json:"complete"`
	Trouble  *struct{ Kind, Message string }
}

type scope struct{ Namespace, Narrowed string }

func TestTheFleetIsSentWholeAndThenWhatChanges(t *testing.T) {
	api, watched := watching(cluster(t, website()).Build())
	l := listen(t, viewers{"jane": {API: api}}, "jane", "/api/fleet")
	if s := until(l, "scope", func(scope) bool { return true }); s != (scope{}) {
		t.Errorf("scope: %+v", s)
	}
	if all := until(l, "rows", func(r rows) bool { return r.Complete }); len(all.Rows) != 1 || all.Rows[0].CanaryRevision != "canary2" {
		t.Fatalf("rows: %+v", all)
	}
	<-watched
	other := website()
	other.Name = "search"
	if err := api.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	until(l, "rows", func(r rows) bool { return len(r.Rows) == 1 && r.Rows[0].Name == "search" })
	other.Status.Step.Summary = "7/9"
	if err := api.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	until(l, "rows", func(r rows) bool { return len(r.Rows) == 1 && r.Rows[0].Step == "7/9" })
	if err := api.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	until(l, "rows", func(r rows) bool { return len(r.Gone) == 1 && r.Gone[0] == "shop/search" })
}

// A browser draws nothing while it reads what it was sent.
func TestALargeFleetIsSentInParts(t *testing.T) {
	var all []client.Object
	for i := range 1101 {
		ro := website()
		ro.Name = fmt.Sprint("website-", i)
		all = append(all, ro)
	}
	l := listen(t, viewers{"jane": {API: cluster(t, all...).Build()}}, "jane", "/api/fleet")
	names, parts := map[string]bool{}, 0
	until(l, "rows", func(r rows) bool {
		if len(r.Rows) > 500 {
			t.Errorf("a part has %d rows", len(r.Rows))
		}
		for _, row := range r.Rows {
			names[row.Name] = true
		}
		parts++
		return r.Complete
	})
	if len(names) != len(all) || parts != 3 {
		t.Errorf("it is complete after %d of %d rows in %d parts", len(names), len(all), parts)
	}
}

func TestAnEmptyFleetIsComplete(t *testing.T) {
	l := listen(t, viewers{"jane": {API: cluster(t).Build()}}, "jane", "/api/fleet")
	until(l, "rows", func(r rows) bool { return r.Complete && len(r.Rows) == 0 })
}

// within is a cluster in which the user may list Rollouts in these namespaces only.
func within(t *testing.T, namespaces ...string) client.WithWatch {
	t.Helper()
	list := func(ctx context.Context, api client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(options)
		if !slices.Contains(namespaces, o.Namespace) {
			return apierrors.NewForbidden(schema.GroupResource{Group: "serin.dev", Resource: "rollouts"}, "", errors.New("no"))
		}
		return api.List(ctx, l, options...)
	}
	return cluster(t, website()).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
}

func TestAFleetThatMayNotBeListedIsNarrowedToOneNamespaceOrSaysWhy(t *testing.T) {
	narrow := listen(t, viewers{"jane": {API: within(t, "shop"), Namespace: "shop"}}, "jane", "/api/fleet")
	if s := until(narrow, "scope", func(scope) bool { return true }); s.Namespace != "shop" || !strings.Contains(s.Narrowed, "the namespace shop") {
		t.Errorf("scope: %+v", s)
	}
	until(narrow, "rows", func(r rows) bool { return r.Complete && len(r.Rows) == 1 })

	none := listen(t, viewers{"jane": {API: within(t), Namespace: "shop"}}, "jane", "/api/fleet")
	until(none, "rows", func(r rows) bool { return !r.Complete && r.Trouble != nil && r.Trouble.Kind == "forbidden" })

	asked := listen(t, viewers{"jane": {API: within(t, "shop"), Namespace: "other"}}, "jane", "/api/fleet?namespace=shop")
	if s := until(asked, "scope", func(scope) bool { return true }); s != (scope{Namespace: "shop"}) {
		t.Errorf("scope: %+v", s)
	}
	until(asked, "rows", func(r rows) bool { return r.Complete && len(r.Rows) == 1 })
}

// TestWhatCannotBeReadSaysWhy: and when it can be read again, the page is whole.
func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kind string
	}{
		"no right":                       {apierrors.NewForbidden(schema.GroupResource{Group: "serin.dev", Resource: "rollouts"}, "", errors.New("no")), "forbidden"},
		"no valid login":                 {apierrors.NewUnauthorized("expired"), "forbidden"},
		"Serin is not installed":         {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "serin.dev", Kind: "Rollout"}}, "missing"},
		"the kind was removed":           {apierrors.NewNotFound(schema.GroupResource{Group: "serin.dev", Resource: "rollouts"}, ""), "missing"},
		"the cluster does not answer":    {errors.New("connection refused"), "unreachable"},
		"the cluster has too much to do": {apierrors.NewTooManyRequests("later", 1), "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			broken.Store(true)
			list := func(ctx context.Context, api client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
				if broken.Load() {
					return test.err
				}
				return api.List(ctx, l, options...)
			}
			api := cluster(t, website()).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
			l := listen(t, viewers{"jane": {API: api}}, "jane", "/api/fleet?namespace=shop")
			until(l, "rows", func(r rows) bool { return !r.Complete && r.Trouble != nil && r.Trouble.Kind == test.kind })
			broken.Store(false)
			until(l, "rows", func(r rows) bool { return r.Complete && r.Trouble == nil && len(r.Rows) == 1 })
		})
	}
}

func TestTheCalendarHasTheFreezesOfEachNamespace(t *testing.T) {
	freeze := &v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.FreezeSpec{Reason: "the sale", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}
	other := website()
	other.Namespace = "books"
	api := cluster(t, website(), other, freeze, shop, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "books"}}).Build()
	h := dashboard.NewHandler(dashboard.Options{Viewers: viewers{"jane": {API: api}}, Origins: []string{origin}, Clock: clock.RealClock{}})
	r := httptest.NewRequest(http.MethodGet, origin+"/api/calendar", nil)
	r.Header.Set("Authorization", "jane")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got view.Calendar
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v", w.Code, err)
	}
	states := map[string]string{}
	for _, l := range got.Lanes {
		states[l.Rollouts[0].Namespace] = l.Spans[0].State
	}
	if states["shop"] != "frozen" || states["books"] != "open" || len(got.Missing) > 0 {
		t.Errorf("states %v, missing %q", states, got.Missing)
	}
}

type update struct {
	Release *view.Release `json:"release"`
	Gone    bool          `json:"gone"`
}

func TestAReleaseIsSentAgainWhenItChangesAndNamesWhatIsGone(t *testing.T) {
	api, watched := watching(cluster(t, website()).Build())
	l := listen(t, viewers{"jane": {API: api}}, "jane", "/api/rollouts/shop/website")
	first := until(l, "release", func(u update) bool { return u.Release != nil })
	if a := first.Release.Actions[0]; a.Name != "Promote" || a.Disabled != "" {
		t.Errorf("action: %+v", a)
	}
	ro := website()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
		t.Fatal(err)
	}
	ro.Status.Canary.Revision = "canary3"
	<-watched
	if err := api.Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	until(l, "release", func(u update) bool { return u.Release != nil && u.Release.CanaryRevision == "canary3" })
	if err := api.Delete(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	until(l, "release", func(u update) bool { return u.Gone })
}

// TestEachRequestIsServedWithTheCredentialsOfItsViewer: two users look at two clusters that have
// nothing in common; neither sees, or changes, what is of the other.
func TestEachRequestIsServedWithTheCredentialsOfItsViewer(t *testing.T) {
	search := website()
	search.Name = "search"
	janes := cluster(t, website()).Build()
	johns := cluster(t, search).WithInterceptorFuncs(interceptor.Funcs{Create: allow("john")}).Build()
	both := viewers{"jane": {API: janes}, "john": {API: johns}}
	for user, want := range map[string]string{"jane": "website", "john": "search"} {
		l := listen(t, both, user, "/api/fleet")
		if all := until(l, "rows", func(r rows) bool { return r.Complete }); len(all.Rows) != 1 || all.Rows[0].Name != want {
			t.Errorf("%s sees %+v", user, all.Rows)
		}
	}
	l := listen(t, both, "john", "/api/rollouts/shop/search")
	if a := until(l, "release", func(u update) bool { return u.Release != nil }).Release.Actions[0]; !strings.Contains(a.Disabled, "The user john may not promote") {
		t.Errorf("action of a user without rights: %+v", a)
	}
	h := dashboard.NewHandler(dashboard.Options{Viewers: both, Origins: []string{origin}, Clock: clock.RealClock{}})
	r := httptest.NewRequest(http.MethodPost, origin+"/api/rollouts/shop/website/actions", strings.NewReader(`{"action":"Abort","revision":"canary2","step":0,"reason":"seen"}`))
	r.Header.Set("Origin", origin)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "john")
	if got := do(h, r); got.StatusCode != http.StatusNotFound {
		t.Errorf("john decides about a Rollout of jane: status %d", got.StatusCode)
	}
	ro := website()
	if err := janes.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil || ro.Spec.Control != nil {
		t.Errorf("control %+v, %v", ro.Spec.Control, err)
	}
}

func TestAnAnswerToAnotherQuestionIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"action":"Abort","revision":"canary1","step":0,"reason":""}`:      "releases revision canary2, not canary1",
		`{"action":"Abort","revision":"","step":0,"reason":""}`:             "names no revision",
		`{"action":"Pause","revision":"canary1","step":0,"reason":""}`:      "no longer releases revision canary1",
		`{"action":"Undo","revision":"stable0","step":0,"reason":""}`:       "stable revision of the Rollout website is stable1, not stable0",
		`{"action":"Retry","revision":"canary2","step":0,"reason":"again"}`: "was not rolled back",
	} {
		api := cluster(t, website()).Build()
		h := dashboard.NewHandler(dashboard.Options{Viewers: viewers{"jane": {API: api}}, Origins: []string{origin}, Clock: clock.RealClock{}})
		r := httptest.NewRequest(http.MethodPost, origin+"/api/rollouts/shop/website/actions", strings.NewReader(body))
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "jane")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d, %s", body, w.Code, w.Body)
		}
		ro := website()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil || ro.Spec.Control != nil || ro.Spec.Paused {
			t.Errorf("%s changed the Rollout: %+v, %v", body, ro.Spec, err)
		}
	}
}

// recorded is a Rollout with the recording of its release, of so many windows.
func recorded(t *testing.T, windows int) (*v1alpha1.Rollout, *v1alpha1.AnalysisResult) {
	t.Helper()
	ro, began := website(), metav1.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ro.Status.Canary.StartedAt = &began
	recorder := recording.New(recording.Release{Rollout: "shop/website", Revision: "canary2", Began: began.Time})
	stage := policy.Stage{Judge: judge.Defaults()}
	for i := range windows {
		start := began.Add(time.Duration(5*i) * time.Second)
		w := analysis.Window{Start: start, End: start.Add(5 * time.Second), Weight: 10}
		recorder.Add(recording.Entry{Window: &w, Stage: stage, Live: began.Time, At: w.End, Result: stage.Judge.Assess(judge.State{}, w.End), Action: policy.Hold})
	}
	text, err := recorder.Text()
	if err != nil {
		t.Fatal(err)
	}
	result := &v1alpha1.AnalysisResult{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}}
	result.Status.Recordings = map[string]v1alpha1.Recording{recording.Key("canary2", began.Time): v1alpha1.Recording(text)}
	return ro, result
}

// TestARecordingStaysWhileItCannotBeRead: where the page removed it for a moment, tables that were
// open and settings that were typed would be gone.
func TestARecordingStaysWhileItCannotBeRead(t *testing.T) {
	ro, result := recorded(t, 1)
	var broken atomic.Bool
	get := func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, ok := o.(*v1alpha1.AnalysisResult); ok && broken.Load() {
			return context.DeadlineExceeded
		}
		return api.Get(ctx, key, o, options...)
	}
	api, watched := watching(cluster(t, ro, result).WithInterceptorFuncs(interceptor.Funcs{Create: allow("jane"), Get: get}).Build())
	l := listen(t, viewers{"jane": {API: api}}, "jane", "/api/rollouts/shop/website")
	type points struct{ Points []view.Point }
	if first := until(l, "recording", func(*points) bool { return true }); first == nil || len(first.Points) != 1 {
		t.Fatalf("the recording is %+v", first)
	}
	<-watched
	change := func(label string) {
		t.Helper()
		ro.Labels = map[string]string{"changed": label}
		if err := api.Update(t.Context(), ro); err != nil {
			t.Fatal(err)
		}
	}
	broken.Store(true)
	change("once")
	until(l, "release", func(u update) bool {
		return u.Release != nil && slices.ContainsFunc(u.Release.Missing, func(m string) bool { return strings.HasPrefix(m, "The recordings can't be read: ") })
	})
	broken.Store(false)
	_, later := recorded(t, 2)
	result.Status = later.Status
	if err := api.Update(t.Context(), result); err != nil {
		t.Fatal(err)
	}
	change("twice")
	if next := until(l, "recording", func(*points) bool { return true }); next == nil || len(next.Points) != 2 {
		t.Errorf("after the recording of one window comes %+v", next)
	}
}

// TestRightsThatCannotBeReadAreNotDenied: the reason of a button does not ask for a role that the
// viewer may have.
func TestRightsThatCannotBeReadAreNotDenied(t *testing.T) {
	silent := func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok && review.Spec.ResourceAttributes.Verb == "patch" {
			return context.DeadlineExceeded
		}
		return allow("jane", "promote")(ctx, api, o, options...)
	}
	api := cluster(t, website(), cache()).WithInterceptorFuncs(interceptor.Funcs{Create: silent}).Build()
	check := func(missing []string, actions []view.Action) {
		t.Helper()
		if !slices.ContainsFunc(missing, func(m string) bool { return strings.HasPrefix(m, "Your rights can't be read: ") }) || len(actions) == 0 {
			t.Errorf("missing %q, actions %v", missing, actions)
		}
		for _, a := range actions {
			if a.Disabled != "The cluster has not said what you may do. The page asks again by itself." {
				t.Errorf("%s is disabled since %q", a.Name, a.Disabled)
			}
		}
	}
	release := until(listen(t, viewers{"jane": {API: api}}, "jane", "/api/rollouts/shop/website"), "release", func(u update) bool { return u.Release != nil }).Release
	check(release.Missing, release.Actions)
	cr := until(listen(t, viewers{"jane": {API: api}}, "jane", "/api/canaries/shop/cache"), "canary", func(c canary) bool { return c.Canary != nil }).Canary
	check(cr.Missing, cr.Actions)
}

func TestSettingsAreTriedOnTheRecordingThatThePageShows(t *testing.T) {
	ro, result := recorded(t, 1)
	for _, tt := range []struct {
		name, body string
		objects    []client.Object
		status     int
		want       string
	}{
		{"a setting", `{"analysis":{"tolerance":"2pp"}}`, []client.Object{ro, result}, http.StatusOK, `"summary":"Serin would not have rolled back either.`},
		{"no setting", `{}`, []client.Object{ro, result}, http.StatusOK, `"points":[{`},
		{"a setting that is none", `{"analysis":{"tolerances":"2pp"}}`, []client.Object{ro, result}, http.StatusBadRequest, "tolerances"},
		{"a value that is none", `{"analysis":{"tolerance":"much"}}`, []client.Object{ro, result}, http.StatusBadRequest, "spec.analysis.tolerance"},
		{"too much", `{"hold":"` + strings.Repeat("1", 9000) + `s"}`, []client.Object{ro, result}, http.StatusBadRequest, "too large"},
		{"a release that is not recorded", `{}`, []client.Object{ro}, http.StatusNotFound, "not recorded"},
		{"no Rollout", `{}`, nil, http.StatusNotFound, "not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Nothing is changed, so that it may be tried by those who may only look.
			h := dashboard.NewHandler(dashboard.Options{Viewers: viewers{"jane": {API: cluster(t, tt.objects...).Build()}}, Origins: []string{origin}, ReadOnly: true, Clock: clock.RealClock{}})
			r := httptest.NewRequest(http.MethodPost, origin+"/api/rollouts/shop/website/what-if", strings.NewReader(tt.body))
			r.Header.Set("Origin", origin)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "jane")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("status %d, %s", w.Code, w.Body)
			}
		})
	}
}
