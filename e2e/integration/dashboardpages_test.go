// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// flowing is traffic of a split: a thousand requests in each second, of which the canary answers
// some.
type flowing struct {
	namespace string
	canary    atomic.Int64
}

func (f *flowing) Observe(context.Context, string) (observe.Snapshot, error) {
	end, canary := time.Now().Truncate(time.Second), float64(f.canary.Load())
	latency := &observe.Histogram{LE: []float64{0.005, 0.01, 0.02}, Counts: []float64{500, 990, 1000}, Total: 1000}
	stable := observe.Flow{Side: metricsv1.SideClient, Server: observe.Party{Namespace: f.namespace}, Apex: "birds", Backend: "birds-stable", Success: 1000 - canary, Latency: latency}
	other := stable
	other.Backend, other.Success, other.Failure, other.Latency = "birds-canary", canary-1, 1, latency
	flows := []observe.Flow{stable, other}
	for _, ends := range [][2]string{{"gateway", "web"}, {"web", "birds"}, {"web", "cart"}, {"cart", "birds"}} {
		flows = append(flows, observe.Flow{Side: metricsv1.SideServer, Client: f.deployment(ends[0]), Server: f.deployment(ends[1]), Success: 198, Failure: 2, Latency: latency})
	}
	return observe.Snapshot{Start: end.Add(-time.Second), End: end, Flows: flows}, nil
}

func (f *flowing) deployment(name string) observe.Party {
	return observe.Party{Namespace: f.namespace, Workload: observe.Workload{Kind: observe.Deployments, Name: name}}
}

// birds is a split of 80 and 20 %, which is programmed by what its status says.
func (s *scene) birds() *splitv1.TrafficSplit {
	s.Helper()
	split := &splitv1.TrafficSplit{Spec: splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{{Service: "birds-stable", Weight: 80}, {Service: "birds-canary", Weight: 20}}}}
	split.Name, split.Labels = "birds", map[string]string{v1alpha1.LabelRollout: "birds"}
	s.create(split)
	s.program(split, metav1.ConditionTrue, splitv1.ReasonProgrammed, "Two proxies share the traffic by these weights.")
	return split
}

// program writes the status of a split, as the operator would.
func (s *scene) program(split *splitv1.TrafficSplit, programmed metav1.ConditionStatus, reason, message string) {
	s.Helper()
	conditions := []metav1.Condition{
		{Type: splitv1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: splitv1.ReasonAccepted, Message: "The router nginx serves the split."},
		{Type: splitv1.ConditionResolvedRefs, Status: metav1.ConditionTrue, Reason: splitv1.ReasonResolved, Message: "Every reference exists."},
		{Type: splitv1.ConditionProgrammed, Status: programmed, Reason: reason, Message: message},
	}
	s.eventually("the status is written", func(ctx context.Context) bool {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(split), split); err != nil {
			s.Fatal(err)
		}
		for i := range conditions {
			conditions[i].ObservedGeneration, conditions[i].LastTransitionTime = split.Generation, metav1.Now()
		}
		split.Status = splitv1.TrafficSplitStatus{Conditions: conditions, Router: "nginx"}
		for i, b := range split.Spec.Backends {
			split.Status.Backends = append(split.Status.Backends, splitv1.BackendStatus{Service: b.Service, Weight: b.Weight, ReadyEndpoints: int32(4 - 3*i)})
		}
		return admin.Status().Update(ctx, split) == nil
	})
}

// There is one TrafficMetrics API in a cluster, so that this test runs alone.
func TestTheTrafficPageShowsDeclaredProgrammedAndMeasuredShares(t *testing.T) {
	s := newScene(t)
	s.bindClusterRole("reader", "view")
	s.allow("splitter", rbacv1.PolicyRule{APIGroups: []string{"split.smi-spec.io"}, Resources: []string{"trafficsplits"}, Verbs: []string{"list", "watch"}})
	s.waitRights("reader", may{"watch", "rollouts", ""})
	split := s.birds()
	s.create(deployment("gateway", 0), deployment("web", 0), deployment("cart", 0), deployment("birds", 0))
	tab := s.openDashboard("reader")
	tab.do(chromedp.Navigate(tab.origin + "/#/traffic"))
	tab.shows("You may not list the TrafficSplits of all namespaces. The page shows those of the namespace " + s.namespace)
	tab.shows("Two proxies share the traffic by these weights.")
	tab.shows("Measured shares are left out: this cluster does not serve TrafficMetrics")

	installTraffic(t)
	source := &flowing{namespace: s.namespace}
	source.canary.Store(200)
	serveTraffic(t, source).join(t)
	serving(t)
	tab.do(chromedp.Reload())
	row := func(backend string) string {
		return `[...document.querySelectorAll(".shares tbody tr")].find(r => r.innerText.startsWith("` + backend + `"))?.innerText.replace(/\s+/g, " ")`
	}
	tab.until("declared, programmed and measured share, endpoints and figures", row("birds-canary")+` === "birds-canary 20 % 20 % 20 % 1 99.50 % 200.0 10 ms"`)
	tab.shows("requests: no mismatch with the weight of 20 %.")
	tab.lacks("Measured shares are left out")
	tab.accessible("traffic")

	// The router keeps to other shares than it says.
	source.canary.Store(20)
	tab.shows("birds-canary answered")
	tab.shows("and its weight is 20 %: look for clients that bypass the router")
	tab.until("the split needs a user", `document.querySelector("h2 .badge.NeedsUser")?.innerText.includes("SharesDiffer")`)
	tab.accessible("traffic-differs")

	// What changes is seen at once.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"backends":[{"service":"birds-stable","weight":1},{"service":"birds-canary","weight":1}]}}`))
	if err := admin.Patch(t.Context(), split, patch); err != nil {
		t.Fatal(err)
	}
	tab.until("the declared share is another one, the programmed one is not", row("birds-canary")+`.startsWith("birds-canary 50 % 20 %")`)
	s.program(split, metav1.ConditionFalse, splitv1.ReasonProxyError, "A proxy can't follow.")
	tab.shows("A proxy can't follow.")

	// Who calls whom, as a picture and as a table.
	tab.do(chromedp.Navigate(tab.origin + "/#/calls"))
	tab.until("the table of calls", `[...document.querySelectorAll("tbody tr")].map(r => r.innerText.replace(/\s+/g, " ")).join() ===
		["cart birds", "gateway web", "web birds", "web cart"].map(ends => ends + " 99.00 % 200.0 10 ms").join()`)
	tab.until("the picture, with clients on the left", `[...document.querySelectorAll("svg.calls .name")].sort((a, b) => a.getAttribute("x") - b.getAttribute("x"))
		.map(name => name.textContent).join() === "gateway,web,cart,birds"`)
	tab.accessible("calls")
	tab.do(chromedp.SetValue(chromedp.CSS(`select`), "services"))
	ask[any](tab, `document.querySelector("select").dispatchEvent(new Event("change", {bubbles: true})); 0`)
	tab.shows("No calls yet")
	tab.until("the kind is in the address", `location.hash.includes("kind=services")`)
	tab.accessible("calls-empty")

	splitter := s.openDashboard("splitter")
	splitter.do(chromedp.Navigate(splitter.origin + "/#/calls"))
	splitter.shows(`Who calls whom is not known: the user "splitter" may not list deployments.metrics.smi-spec.io in the namespace ` + s.namespace)
	splitter.do(chromedp.Navigate(splitter.origin + "/#/traffic?namespace=" + s.namespace))
	splitter.shows("A proxy can't follow.")
	splitter.shows(`Measured shares are left out: the user "splitter" may not list trafficsplits.metrics.smi-spec.io in the namespace ` + s.namespace)
	splitter.do(chromedp.Focus(chromedp.CSS(`h1`)))
	splitter.strike("/")
	splitter.do(chromedp.KeyEvent("bees"))
	splitter.shows("No TrafficSplits match your search")
	splitter.until("the search is in the address", `location.hash.includes("q=bees")`)
	splitter.press("Clear the search")
	splitter.shows("1 in the namespace " + s.namespace)
	if err := admin.Delete(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	splitter.shows("No TrafficSplits yet")
}

func TestThePagesOfTrafficAndCanariesSayWhatTheyCannotShow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"list", "canaryreleases", ""}, may{"watch", "canaryreleases", ""})
	for page, names := range map[string]struct{ resource, empty string }{
		"traffic":  {"trafficsplits.split.smi-spec.io", "No TrafficSplits yet"},
		"canaries": {"canaryreleases.serin.dev", "No CanaryReleases yet"},
	} {
		tab := s.openDashboard("reader")
		tab.do(chromedp.Navigate(tab.origin + "/#/" + page))
		tab.shows(names.empty)
		tab.accessible(page + "-empty")
		call(tab, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/api/" + page + "*"}}})
		tab.do(chromedp.Reload())
		tab.shows("Loading the")
		tab.picture(page + "-loading")
		call(tab, fetch.Disable, cdp.Empty{})
		stranger := s.openDashboard("stranger")
		stranger.do(chromedp.Navigate(stranger.origin + "/#/" + page))
		stranger.shows("You may not see this")
		stranger.shows(`The user "stranger" may not list ` + names.resource + " in the namespace " + s.namespace)
		stranger.accessible(page + "-forbidden")
		stranger.end()
		stranger.shows("The dashboard does not answer")
	}
	tab := s.openDashboard("reader")
	tab.do(chromedp.Navigate(tab.origin + "/#/canaries/" + s.namespace + "/none"))
	tab.shows("There is no such CanaryRelease")
}

func TestTheCalendarAReleaseAndCallsSayWhatTheyCannotShow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"list", "rollouts", ""}, may{"watch", "rollouts", ""})
	tab, stranger := s.openDashboard("reader"), s.openDashboard("stranger")
	for name, page := range map[string]struct{ at, request, loading, empty, forbidden string }{
		"calendar": {"calendar", "calendar", "Loading the schedules", "No Rollouts yet", "The calendar can't be loaded"},
		"release":  {"rollouts/" + s.namespace + "/website", "rollouts/", "Loading the release", "There is no such Rollout", "You may not see this"},
		"calls":    {"calls", "calls", "Loading who calls whom", "", "Who calls whom is not known"},
	} {
		call(tab, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/api/" + page.request + "*"}}})
		tab.do(chromedp.Navigate(tab.origin+"/#/"+page.at), chromedp.Reload())
		tab.shows(page.loading)
		call(tab, fetch.Disable, cdp.Empty{})
		tab.do(chromedp.Reload()) // the browser may never send a request that was paused
		tab.shows(page.empty)
		tab.lacks(page.loading)
		tab.accessible(name + "-empty")
		stranger.do(chromedp.Navigate(stranger.origin + "/#/" + page.at))
		stranger.shows(page.forbidden)
		stranger.lacks("0 in the namespace")
		stranger.accessible(name + "-forbidden")
	}
	tab.do(chromedp.Navigate(tab.origin + "/#/calendar"))
	tab.shows("You may not list the Rollouts of all namespaces. The page shows those of the namespace " + s.namespace)
}

// A page notes what it shows in the address a moment after it has drawn it, and the browser tells it
// of another address a moment after the user chose that. The note must not take the user back.
func TestAPageThatIsLeftKeepsNothingInTheAddress(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"list", "rollouts", ""}, may{"watch", "rollouts", ""})
	tab := s.openDashboard("reader")
	tab.shows("No Rollouts yet")
	ask[any](tab, `(later => { window.setTimeout = (f, ms) => later(() => {
		if (document.querySelector("input")?.value === "b") location.hash = "#/traffic";
		f();
	}, ms); })(window.setTimeout); 0`)
	tab.do(chromedp.Focus(chromedp.CSS(`input`)), chromedp.KeyEvent("b"))
	tab.shows("No TrafficSplits yet")
}

// cache is a CanaryRelease that gets a tenth of the traffic, by what its status says.
func (s *scene) cache() *v1alpha1.CanaryRelease {
	s.Helper()
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "bigger-cache"}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Path: "web", Config: "image: {tag: v2}\ncache:\n  size: 512Mi\n"}
	s.create(cr)
	now := metav1.Now()
	cr.Status = v1alpha1.CanaryReleaseStatus{
		ObservedGeneration: cr.Generation, Release: &v1alpha1.CanaryHelmRelease{Revision: 4}, Later: []string{"Role/shop"},
		Workloads:  []v1alpha1.CanaryWorkload{{Name: "web", Replicas: 1, ReadyReplicas: 1}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing, Message: "The canary gets 10 % of the traffic.", LastTransitionTime: now}},
		Services: []v1alpha1.CanaryServiceStatus{{
			Service: "web", Programmed: true, Proxies: 2, Ports: []v1alpha1.CanaryPortStatus{{Port: "80/TCP", Weight: 10}, {Port: "8443/TCP", Weight: 0}},
			Traffic: &v1alpha1.CanaryTraffic{EndedAt: metav1.NewMicroTime(now.Time), Seconds: 60, Stable: v1alpha1.CanaryCounts{Requests: 5320, Failures: 4}, Canary: v1alpha1.CanaryCounts{Requests: 599, Failures: 1}},
		}},
	}
	s.reportCanary(cr)
	return cr
}

func TestEachButtonOfACanaryDecides(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	addPromoter(s)
	cr := s.cache()
	transition := func() v1alpha1.CanaryTransition {
		now := s.get(t.Context(), cr.Name, &v1alpha1.CanaryRelease{}).(*v1alpha1.CanaryRelease)
		return now.Spec.Transition
	}
	tab := s.openDashboard("promoter")
	tab.do(chromedp.Navigate(tab.origin + "/#/canaries"))
	tab.shows("Helm release shop, revision 4 · 0 to 10 % of the traffic")
	tab.shows("Next: A user adopts or deprecates it.")
	tab.accessible("canaries")
	tab.do(chromedp.Focus(chromedp.CSS(`main h2 a`)), chromedp.KeyEvent(kb.Enter))
	tab.until("Enter opens the canary", `document.querySelector("h1").textContent === "bigger-cache" && document.activeElement.tagName === "H1"`)
	tab.shows("size: 512Mi")
	tab.shows("sub-chart web")
	tab.until("the weights of the ports", `document.body.innerText.includes("8443/TCP") && [...document.querySelectorAll(".port .weight")].map(w => w.innerText).join() === "10 %,0 %"`)
	tab.until("what was answered", `[...document.querySelectorAll("tbody tr")].some(r => r.innerText.replace(/\s+/g, " ") === "canary 10.1 % 599 1")`)
	tab.accessible("canary")

	// A question that was answered too late is refused, and the dialog says why.
	tab.press("Adopt")
	tab.until("the question", `document.querySelector("dialog[open]")?.innerText.includes("Adopt the canary of revision 4 of the Helm release shop?")`)
	tab.picture("canary-confirm")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"config":"cache: {size: 1Gi}\n"}}`))
	if err := admin.Patch(t.Context(), cr, patch); err != nil {
		t.Fatal(err)
	}
	tab.press("Adopt")
	tab.shows("The CanaryRelease bigger-cache was changed since the page asked; look at it again before you decide.")
	tab.do(chromedp.KeyEvent(kb.Escape))
	tab.shows("size: 1Gi")
	if got := transition(); got != v1alpha1.CanaryTransitionNone {
		t.Errorf("it is %s", got)
	}

	tab.confirm("Adopt", "All traffic goes to the canary, the release is upgraded with its values", "")
	tab.shows("Requested: Adopted.")
	if got := transition(); got != v1alpha1.CanaryTransitionAdopted {
		t.Errorf("Adopt: it is %q", got)
	}
	tab.until("what is requested is not possible again", `[...document.querySelectorAll(".actions button")][0].ariaDisabled === "true"`)
	tab.confirm("Deprecate", "All traffic goes to the release, and the canary is removed. That is final.", "")
	if got := transition(); got != v1alpha1.CanaryTransitionDeprecated {
		t.Errorf("Deprecate: it is %q", got)
	}
	s.eventually("the decision is written", func(ctx context.Context) bool {
		now := metav1.NowMicro()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(cr), cr); err != nil {
			t.Fatal(err)
		}
		cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionDeprecated, Reason: v1alpha1.ReasonRequested, Message: "A user asked for it.", Time: now, EndedAt: &now}
		cr.Status.Services, cr.Status.Workloads = nil, nil
		return admin.Status().Update(ctx, cr) == nil
	})
	tab.shows("A user asked for it.")
	tab.shows("Next: Nothing.")
	tab.shows("No Service splits its traffic.")
	if err := admin.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	tab.shows("There is no such CanaryRelease")
}

func TestTheDashboardEndsNoCanaryForWhoMayNot(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	addPromoter(s)
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"watch", "canaryreleases", ""})
	cr := s.cache()
	for _, test := range []struct {
		user, args string
		may        []string
		why        string
	}{
		{"reader", "", nil, "The user reader may not promote the CanaryRelease bigger-cache in the namespace " + s.namespace},
		{"editor", "", nil, `ask for a role with the verbs "promote" and "patch" for "canaryreleases.serin.dev"`},
		{"admin", "--read-only", nil, "The dashboard was started with --read-only."},
		{"admin", "", []string{"Adopt", "Deprecate"}, ""},
	} {
		t.Run(test.user+test.args, func(t *testing.T) {
			tab := (&scene{T: t, namespace: s.namespace, reader: admin}).openDashboard(test.user, strings.Fields(test.args)...)
			tab.do(chromedp.Navigate(tab.origin + "/#/canaries/" + s.namespace + "/" + cr.Name))
			tab.shows("The canary gets 10 % of the traffic.")
			var possible []string
			for _, label := range []string{"Adopt", "Deprecate"} {
				if why := tab.whyNot(label); why == "" {
					possible = append(possible, label)
				} else if !strings.Contains(why, test.why) {
					t.Errorf("%s is disabled since %q, want %q", label, why, test.why)
				}
			}
			if diff := cmp.Diff(test.may, possible); diff != "" {
				t.Errorf("buttons (-want +got):\n%s", diff)
			}
			// What the buttons say is what the server does.
			answer := tab.send("canaries/"+s.namespace+"/"+cr.Name, fmt.Sprintf(`{"action":"Adopted","revision":"%d","step":0,"reason":""}`, cr.Generation))
			if refused := strings.HasPrefix(answer, "403 "); refused != (test.may == nil) {
				t.Errorf("the server answers %s", answer)
			}
		})
	}
}
