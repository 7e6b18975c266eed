// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// status writes the status of a Rollout, as the operator would.
func (s *scene) status(name string, f func(*v1alpha1.RolloutStatus)) {
	s.Helper()
	s.eventually("the status is written", func(ctx context.Context) bool {
		ro := &v1alpha1.Rollout{}
		if err := admin.Get(ctx, s.key(name), ro); err != nil {
			s.Fatal(err)
		}
		ro.Status.ObservedGeneration = ro.Generation
		f(&ro.Status)
		return admin.Status().Update(ctx, ro) == nil
	})
}

// says sets the condition Ready.
func says(reason, message string) func(*v1alpha1.RolloutStatus) {
	return func(status *v1alpha1.RolloutStatus) {
		ready := metav1.ConditionFalse
		if reason == v1alpha1.ReasonStable {
			ready = metav1.ConditionTrue
		}
		status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
		if reason == v1alpha1.ReasonRolledBack {
			status.Conditions = append(status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now()})
		}
	}
}

// releasing is a status in the second of two steps.
func releasing(stable, canary string) func(*v1alpha1.RolloutStatus) {
	return func(status *v1alpha1.RolloutStatus) {
		says(v1alpha1.ReasonHolding, "Step 2/2: 60 % of the traffic goes to the canary until 16:22:28 UTC or later.")(status)
		begun := metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
		live := metav1.NewMicroTime(begun.Add(8 * time.Minute))
		next := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
		status.Stable = &v1alpha1.VersionStatus{Revision: stable, Replicas: 4, Ready: 4}
		status.Canary = &v1alpha1.VersionStatus{Revision: canary, Replicas: 3, Ready: 2, StartedAt: &begun}
		status.Step = &v1alpha1.StepStatus{Index: 1, Of: 2, Summary: "2/2", Weight: 60, StartedAt: live, ProgrammedAt: &live}
		status.Weight = &v1alpha1.WeightStatus{Requested: 60, Observed: new(int32(20))}
		status.NextTransitionTime = &next
		status.Decision = nil
		status.Analysis = &v1alpha1.AnalysisStatus{
			Verdict: "Inconclusive", Reason: "NotEnoughEvidence", Message: "Canary fails 0.4 pp more often than stable.", Evidence: "12.3", Threshold: "100",
			CanaryRequests: 3550, CanaryFailures: 17, StableRequests: 33620, StableFailures: 21, MinDetectableEffect: "0.8pp", DecidingMetric: "failures",
		}
		status.History = []v1alpha1.HistoryEntry{{
			Revision: stable, Outcome: v1alpha1.OutcomePromoted, Message: "Every step passed.", StartedAt: &begun, EndedAt: begun,
			Interventions: []v1alpha1.Intervention{{Action: v1alpha1.ControlSkip, StepIndex: new(int32(0)), By: "jane", Reason: "no traffic at night", Time: metav1.NewMicroTime(begun.Time)}},
		}}
	}
}

// fleet is a team whose namespace has Rollouts in several states.
func fleetOf(t *testing.T) *scene {
	t.Helper()
	s := team(t, signed)
	for name, status := range map[string]func(*v1alpha1.RolloutStatus){
		"website":  releasing("5d4f8c7b9", "7f9c6d5b4"),
		"checkout": says(v1alpha1.ReasonStable, "The Deployment runs the stable version."),
		"search":   says(v1alpha1.ReasonRolledBack, "Rolled back: the canary failed more often than stable."),
		"payments": says(v1alpha1.ReasonWaitingForApproval, "Step 1/2: waits for approval."),
	} {
		ro := s.named(name)
		ro.Spec.Service, ro.Spec.WorkloadRef.Name = name, name
		s.create(ro)
		s.status(name, status)
	}
	return s
}

func TestTheFleetIsSearchedSortedAndLive(t *testing.T) {
	t.Parallel()
	s := fleetOf(t)
	tab := s.openDashboard("editor")
	tab.shows("You may not list the Rollouts of all namespaces. The page shows those of the namespace " + s.namespace)
	tab.shows("4 in the namespace " + s.namespace)
	first := `document.querySelector(".body [aria-rowindex='2'] a").textContent`
	tab.until("what failed comes first", first+` === "search"`)
	tab.shows("12.3 of 100")
	tab.shows("20 % → 60 %")
	tab.accessible("fleet")

	// The keyboard: / searches, arrows move, Enter opens.
	tab.strike("/")
	tab.do(chromedp.KeyEvent("check"))
	tab.shows("1 of 4")
	tab.until("the search is in the address", `location.hash.includes("q=check")`)
	ask[any](tab, `document.querySelector("input[type=search]").select()`)
	tab.do(chromedp.KeyEvent(kb.Backspace))
	tab.shows("4 in the namespace")
	tab.do(chromedp.Focus(chromedp.CSS(`.body .row a[tabindex="0"]`)), chromedp.KeyEvent(kb.ArrowDown))
	tab.until("the next row has the focus", `document.activeElement.textContent === "payments"`)
	tab.do(chromedp.KeyEvent(kb.End))
	tab.until("the last row has the focus", `document.activeElement.textContent === "checkout"`)

	// What changes is seen at once, and what is new or gone.
	s.status("checkout", says(v1alpha1.ReasonWaitingForEvidence, "The evidence is inconclusive."))
	tab.shows("WaitingForEvidence")
	tab.until("the row has moved and kept the focus", `document.activeElement.textContent === "checkout" && document.activeElement.closest(".row").ariaRowIndex === "4"`)
	tab.do(chromedp.KeyEvent(kb.ArrowDown))
	tab.until("the row below it has the focus", `document.activeElement.textContent === "website"`)
	s.create(s.named("another"))
	tab.shows("5 in the namespace")
	if err := admin.Delete(t.Context(), s.named("another")); err != nil {
		t.Fatal(err)
	}
	tab.shows("4 in the namespace")

	tab.do(chromedp.Click(`//button[contains(., "Needs a user")]`))
	tab.shows("1 of 4")
	tab.do(chromedp.Click(`//button[contains(., "Needs a user")]`), chromedp.Click(`//button[starts-with(., "Rollout")]`))
	tab.until("the rows are sorted by name", first+` === "checkout" && document.querySelector("[aria-sort=ascending]").textContent.startsWith("Rollout")`)

	tab.do(chromedp.Focus(chromedp.CSS(`.body .row a[tabindex="0"]`)), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Enter))
	tab.until("Enter opens the release", `document.querySelector("h1").textContent === "website" && document.activeElement.tagName === "H1"`)
}

func TestThePagesSayWhatTheyCannotShow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.bindClusterRole("reader", "view")
	s.waitRights("reader", may{"list", "rollouts", ""}, may{"watch", "rollouts", ""})

	tab := s.openDashboard("reader")
	tab.shows("No Rollouts yet")
	tab.accessible("fleet-empty")

	// While nothing has been read, the page says that it reads.
	call(tab, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/api/fleet*"}}})
	tab.do(chromedp.Reload())
	tab.shows("Loading the Rollouts")
	tab.picture("fleet-loading")
	call(tab, fetch.Disable, cdp.Empty{})
	tab.do(chromedp.Reload()) // the browser may never send a request that was paused
	tab.shows("No Rollouts yet")

	tab.do(chromedp.Navigate(tab.origin + "/#/rollouts/" + s.namespace + "/none"))
	tab.shows("There is no such Rollout")
	tab.do(chromedp.Navigate(tab.origin + "/#/somewhere"))
	tab.shows("There is no such page")

	stranger := s.openDashboard("stranger")
	stranger.shows("You may not see this")
	stranger.shows(`The user "stranger" may not list rollouts.serin.dev in the namespace ` + s.namespace)
	stranger.accessible("forbidden")

	// Another browser, without the secret, is served nothing but the empty tab.
	tab.allow(stranger.origin)
	tab.do(chromedp.Navigate(stranger.origin+"/"), chromedp.WaitVisible(chromedp.CSS(`h1, h2`)))
	tab.shows("This browser is not logged in")

	stranger.end()
	stranger.shows("The dashboard does not answer")
}

func TestEachButtonOfTheDashboardDecides(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	s.create(newRollout(), deployment("website", 1))
	revision := func() string {
		var sets appsv1.ReplicaSetList
		s.eventually("the Deployment has a ReplicaSet", func(ctx context.Context) bool {
			return admin.List(ctx, &sets, client.InNamespace(s.namespace)) == nil && len(sets.Items) == 1
		})
		return sets.Items[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}()
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"app","image":"`+imageV2+`"}]}}}}`))
	if err := admin.Patch(t.Context(), s.deployment(), patch); err != nil {
		t.Fatal(err)
	}
	s.create(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "website.1"}, Reason: "WeightLive", Message: "Step 1/2: 20 % of the traffic goes to the canary", Type: corev1.EventTypeNormal,
		InvolvedObject: corev1.ObjectReference{Kind: "Rollout", Name: "website", Namespace: s.namespace, UID: s.rollout().UID}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	})
	s.status("website", releasing(revision, "7f9c6d5b4"))
	tab := s.openDashboard("oncall", "website")
	tab.shows("60 % of the traffic goes to the canary")
	tab.shows("live since") // the first step, of which an event tells
	tab.shows("by jane")
	tab.accessible("release")

	step := int32(1)
	for _, test := range []struct {
		label, question string
		want            v1alpha1.Control
	}{
		{"Promote", "Promote step 2/2 of revision 7f9c6d5b4?", v1alpha1.Control{Action: v1alpha1.ControlPromote, StepIndex: &step}},
		{"Skip step", "Skip step 2/2 of revision 7f9c6d5b4?", v1alpha1.Control{Action: v1alpha1.ControlSkip, StepIndex: &step}},
		{"Promote fully", "Promote revision 7f9c6d5b4 fully?", v1alpha1.Control{Action: v1alpha1.ControlPromoteFull}},
		{"Abort", "Abort revision 7f9c6d5b4?", v1alpha1.Control{Action: v1alpha1.ControlAbort}},
		{"Retry", "Retry revision 7f9c6d5b4?", v1alpha1.Control{Action: v1alpha1.ControlRetry}},
	} {
		if test.want.Action == v1alpha1.ControlRetry {
			s.status("website", func(status *v1alpha1.RolloutStatus) {
				status.Decision = &v1alpha1.Decision{Revision: "7f9c6d5b4", Action: v1alpha1.ActionRollBack, Reason: "Aborted", Time: metav1.NowMicro()}
			})
		}
		tab.confirm(test.label, test.question, "seen on the page")
		test.want.Revision, test.want.Reason, test.want.By = "7f9c6d5b4", "seen on the page", "oncall"
		if diff := cmp.Diff(&test.want, s.rollout().Spec.Control); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.label, diff)
		}
		tab.shows("Requested: " + string(test.want.Action))
	}
	for _, test := range []struct {
		label, question string
		paused          bool
	}{{"Pause", "Pause the release of revision 7f9c6d5b4?", true}, {"Resume", "Resume the release of revision 7f9c6d5b4?", false}} {
		tab.confirm(test.label, test.question, "")
		if got := s.rollout().Spec.Paused; got != test.paused {
			t.Errorf("%s: paused is %t", test.label, got)
		}
	}
	tab.confirm("Undo", "Put the template of revision "+revision+" back into the Deployment website?", "")
	if got := s.deployment().Spec.Template.Spec.Containers[0].Image; got != imageV1 {
		t.Errorf("Undo: the Deployment has the image %s", got)
	}

	// A question that was answered too late is refused, and the dialog says why.
	s.status("website", releasing(revision, "7f9c6d5b4"))
	tab.until("Abort is possible", `[...document.querySelectorAll(".actions button")].some(b => b.textContent === "Abort")`)
	tab.press("Abort")
	tab.until("the question has the focus in it", `document.querySelector("dialog[open]").contains(document.activeElement)`)
	tab.picture("release-confirm")
	s.status("website", releasing(revision, "6c5b4a3f2"))
	tab.press("Abort")
	tab.shows("releases revision 6c5b4a3f2, not 7f9c6d5b4; look at it again before you decide")
	tab.do(chromedp.KeyEvent(kb.Escape))
	tab.until("Escape closes the dialog, and the button has the focus again", `!document.querySelector("dialog") && document.activeElement.textContent.startsWith("Abort")`)
}

func TestTheCalendarShowsWhenReleasesMayGoOnAndWhatWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, windows := range map[string][]v1alpha1.Window{"website": {{Start: "0 9 * * MON-FRI", Duration: "8h"}}, "search": {{Start: "0 9 * * MON-FRI", Duration: "8h"}}, "payments": nil} {
		ro := s.named(name)
		if windows != nil {
			ro.Spec.Schedule = &v1alpha1.Schedule{TimeZone: "Europe/Berlin", Windows: windows}
		}
		s.create(ro)
	}
	s.status("website", says(v1alpha1.ReasonWaitingForSchedule, "The next window opens at 09:00 CET."))
	tab := s.openDashboard("")
	tab.do(chromedp.Navigate(tab.origin + "/#/calendar?namespace=" + s.namespace))
	tab.shows("2 Rollouts · 1 waiting")
	tab.shows("WaitingForSchedule")
	tab.until("a Rollout without a schedule is open all the time", `[...document.querySelectorAll("section")].some(s => s.innerText.includes("payments") && s.querySelectorAll(".span").length === 1 && s.querySelector(".span.open"))`)
	tab.unfold("Times")
	tab.shows("In Europe/Berlin")
	tab.accessible("calendar")
	tab.do(chromedp.Click(chromedp.Search(`//li/a[contains(., "website")]`)))
	tab.until("the release is opened", `document.querySelector("h1").textContent === "website"`)
}

func TestTheRecordingOfAReleaseIsDrawnAndReadAsATable(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(newRollout())
	s.status("website", releasing("5d4f8c7b9", "7f9c6d5b4"))
	began := s.rollout().Status.Canary.StartedAt.Time
	recorder := recording.New(recording.Release{Rollout: s.namespace + "/website", Revision: "7f9c6d5b4", Began: began})
	stage := policy.Stage{Hold: time.Minute, OnInconclusive: policy.WaitForEvidence, Judge: judge.Config{MaxFalseRollback: 0.01, Tolerance: 0.005, UsualFailureRate: 0.001, MinRequests: 50, StaleAfter: time.Minute}}
	state, r := judge.State{}, rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		w := analysis.Window{Start: began.Add(time.Duration(5*i) * time.Second), End: began.Add(time.Duration(5*i+5) * time.Second), Weight: 20}
		w.Canary = analysis.Variant{Requests: 100, Latency: &analysis.Histogram{LE: []float64{0.1, 0.2, 0.4}, Counts: []int64{45, 90, 100}}}
		w.Stable = analysis.Variant{Requests: 400, Latency: &analysis.Histogram{LE: []float64{0.1, 0.2, 0.4}, Counts: []int64{200, 390, 400}}}
		for range 100 {
			if r.Float64() < 0.002+float64(i/40)*0.02 {
				w.Canary.Failures++
			}
			if r.Float64() < 0.008 {
				w.Stable.Failures++
			}
		}
		before := state
		var result judge.Result
		state, result = stage.Judge.Next(state, w)
		recorder.Add(recording.Entry{Window: &w, Stage: stage, Step: 0, Before: before, Result: result, Action: policy.Hold, Live: began, At: w.End})
	}
	text, err := recorder.Text()
	if err != nil {
		t.Fatal(err)
	}
	result := &v1alpha1.AnalysisResult{ObjectMeta: metav1.ObjectMeta{Name: "website"}}
	s.create(result)
	result.Status.Recordings = map[string]v1alpha1.Recording{recording.Key("7f9c6d5b4", began): v1alpha1.Recording(text)}
	if err := admin.Status().Update(t.Context(), result); err != nil {
		t.Fatal(err)
	}
	tab := s.openDashboard("", "website")
	tab.shows("Recording of revision 7f9c6d5b4")
	tab.until("the charts are drawn", `[...document.querySelectorAll(".chart canvas")].filter(c => c.width > 100).length === 3`)
	tab.until("the chart says what it shows", `document.querySelector(".chart").ariaLabel.startsWith("At the end the canary fails") && document.querySelector(".chart").ariaLabel.endsWith("would have been rolled back")`)
	tab.until("the chart of latencies too", `document.querySelectorAll(".chart")[1].ariaLabel === "At the end the canary is slower than stable by 11.1 ms (p50), 105.3 ms (p95), 60.0 ms (p99)"`)
	tab.unfold("As a table")
	tab.until("each window is a row", `document.querySelectorAll("[aria-labelledby=recording] .long tbody tr").length === 60`)
	tab.accessible("recording")
	for i := range 2 {
		s.status("website", func(st *v1alpha1.RolloutStatus) {
			st.Analysis.LastWindowEnd = new(metav1.NewMicroTime(began.Add(time.Duration(305+5*i) * time.Second)))
			st.Analysis.CanaryRequests, st.Analysis.CanaryFailures = int64(6100+100*i), int64(123+i)
			st.Analysis.StableRequests, st.Analysis.StableFailures = int64(24400+400*i), 48
		})
		tab.until("the curves go on with a window that is not stored", fmt.Sprintf(`document.querySelectorAll("[aria-labelledby=recording] .long tbody tr").length === %d`, 61+i))
	}
	tab.shows("124 of 6200 so far")
	tab.unfold("What if")
	tolerance := chromedp.Search(`//label[contains(., "Tolerance")]//input`)
	tab.do(chromedp.SendKeys(tolerance, "20pp"))
	tab.press("Try")
	tab.shows("Serin would not have rolled back by the end of the recording. In the release, it did after")
	tab.until("both judgements are drawn", `document.querySelectorAll(".whatif .chart canvas").length === 1`)
	tab.unfold("Both as a table")
	tab.until("each window has both judgements", `document.querySelectorAll(".whatif tbody tr").length === 60`)
	tab.accessible("what-if")
	tab.do(chromedp.SendKeys(tolerance, "x"))
	tab.press("Try")
	tab.shows("spec.analysis.tolerance")
}

func TestTheDashboardGivesNobodyMoreRightsThanTheyHave(t *testing.T) {
	t.Parallel()
	s := fleetOf(t)
	s.bindClusterRole("reader", "view")
	addPromoter(s)
	s.waitRights("reader", may{"watch", "rollouts", ""})
	all := []string{"Promote", "Skip step", "Promote fully", "Abort", "Pause", "Undo"}
	for _, test := range []struct {
		user, args string
		may        []string
		why        string
	}{
		{"reader", "", nil, "The user reader may not promote the Rollout website in the namespace " + s.namespace},
		{"editor", "", []string{"Pause", "Undo"}, `ask for a role with the verbs "promote" and "patch" for "rollouts.serin.dev"`},
		{"promoter", "", []string{"Promote", "Skip step", "Promote fully", "Abort"}, ""},
		{"admin", "", all, ""},
		{"admin", "--read-only", nil, "The dashboard was started with --read-only."},
	} {
		t.Run(test.user+test.args, func(t *testing.T) {
			tab := (&scene{T: t, namespace: s.namespace, reader: admin}).openDashboard(test.user, append(strings.Fields(test.args), "website")...)
			tab.shows("60 % of the traffic goes to the canary")
			if !poll(tab.ctx, func(context.Context) bool { return strings.Contains(tab.whyNot("Promote"), test.why) }) {
				t.Errorf("Promote is disabled since %q, want %q", tab.whyNot("Promote"), test.why)
			}
			var possible []string
			for _, label := range all {
				if tab.whyNot(label) == "" {
					possible = append(possible, label)
				}
			}
			if diff := cmp.Diff(test.may, possible); diff != "" {
				t.Errorf("buttons (-want +got):\n%s", diff)
			}
			if test.why != "" {
				// Where the API server did not say in time who the user is, the reason says "You" until it is asked again.
				if !poll(tab.ctx, func(context.Context) bool {
					tab.press("Promote")
					return ask[bool](tab, `document.querySelector(".said").textContent.includes(`+quoted(test.why)+`) && !document.querySelector("dialog")`)
				}) {
					t.Fatalf("the reason is never said; the page:\n%s", tab.text())
				}
			}
			// What the buttons say is what the server does.
			answer := tab.post(s.namespace, "website", `{"action":"Abort","revision":"7f9c6d5b4","step":0,"reason":"tried by `+test.user+`"}`)
			refused := strings.HasPrefix(answer, "403 ")
			if refused == (tab.whyNot("Abort") == "") {
				t.Errorf("the server answers %s", answer)
			}
		})
	}
}

// post sends an action from the tab, past its buttons.
func (t *tab) post(namespace, name, body string) string {
	t.Helper()
	return t.send("rollouts/"+namespace+"/"+name, body)
}

// send sends an action about the object of a path.
func (t *tab) send(path, body string) string {
	t.Helper()
	return ask[string](t, fmt.Sprintf(`fetch("api/%s/actions", {method: "POST", headers: {"Content-Type": "application/json"}, body: %s})
		.then(async r => r.status + " " + await r.text())`, path, quoted(body)))
}

func TestAReleaseGoesOnFromTheDashboard(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	tab := p.openDashboard("", "website")
	tab.shows("Step 1/2")
	tab.until("the live weight is 20 %", `document.querySelector(".card .weight").innerText === "20 %"`)
	tab.confirm("Skip step", "Skip step 1/2 of revision", "no traffic at night")
	p.held(1)
	tab.shows("Step 2/2")
	tab.until("the live weight is 60 %", `document.querySelector(".card .weight").innerText === "60 %"`)
	tab.shows("no traffic at night")
	tab.confirm("Abort", "All traffic goes to the stable version", "wrong prices")
	p.waitReason(v1alpha1.ReasonRolledBack)
	tab.shows("RolledBack")
	tab.shows("wrong prices")
	tab.until("Retry is possible", `[...document.querySelectorAll(".actions button")].some(b => b.textContent === "Retry")`)
}
