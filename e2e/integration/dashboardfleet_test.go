// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sync/errgroup"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var fleetSize = flag.Int("fleet", 150, "how many Rollouts TestManyRolloutsAreDrawnAsTheyAreSeen has; with 1000 or more it changes 50 of them a second and prints figures")

// large is the size of a fleet from which on figures say something.
const large = 1000

// watchFrames notes in the page when the data has come and the first rows are drawn, the times between frames, and the longest task of the page.
const watchFrames = `(() => {
	let last = 0;
	window.dataAt = window.firstRows = window.longestTask = 0;
	window.frameTimes = [];
	new PerformanceObserver(list => {
		for (const task of list.getEntries()) window.longestTask = Math.max(window.longestTask, task.duration);
	}).observe({entryTypes: ["longtask"]});
	const parse = JSON.parse;
	JSON.parse = text => {
		if (!window.dataAt && text.length > 50000) window.dataAt = performance.now();
		return parse(text);
	};
	const look = () => {
		const now = performance.now();
		if (!window.firstRows && document.querySelector(".body .row")) window.firstRows = now;
		if (last) window.frameTimes.push(now - last);
		last = now;
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})()`

func TestManyRolloutsAreDrawnAsTheyAreSeen(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range *fleetSize {
		group.Go(func() error {
			ro := s.named(fmt.Sprintf("website-%04d", i))
			if err := admin.Create(ctx, ro); err != nil || i%3 != 0 {
				return err
			}
			releasing("5d4f8c7b9", "7f9c6d5b4")(&ro.Status)
			return admin.Status().Update(ctx, ro)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	tab := s.openDashboard("")
	call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchFrames})
	if *fleetSize < large {
		call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchRows})
	}
	tab.do(chromedp.Navigate(tab.origin+"/#/?namespace="+s.namespace), chromedp.Reload())
	tab.until("all are counted", fmt.Sprintf(`document.querySelector(".title p").textContent.replace(",", "").startsWith("%d in the namespace")`, *fleetSize))
	tab.do(chromedp.Focus(chromedp.CSS(`.body .row a[tabindex="0"]`)), chromedp.KeyEvent(kb.End))
	tab.until("the last row has the focus", fmt.Sprintf(`document.activeElement.closest(".row")?.ariaRowIndex === "%d"`, *fleetSize+1))
	if drawn := ask[int](tab, `document.querySelectorAll(".body .row").length`); drawn > 40 {
		t.Errorf("%d rows are drawn, which are more than can be seen", drawn)
	}
	if *fleetSize >= large {
		s.measureFleet(tab)
		return
	}
	tab.do(chromedp.KeyEvent(kb.Home))
	tab.until("the first row has the focus", `document.activeElement.closest(".row")?.ariaRowIndex === "2"`)
	ask[any](tab, watchAgain)
	s.changeSeen(tab, 3, "41.1", "the row that has changed")
	s.changeSeen(tab, 99, "", "no row, since it is not seen") // is drawn no earlier than the next one
	s.changeSeen(tab, 6, "52.2", "the other row that has changed")
}

// watchRows notes which rows are drawn, by what only drawing them reads, and which are looked at in
// order to sort them.
const watchRows = `(() => {
	window.drawn = []; window.looked = new Set();
	const parse = JSON.parse;
	JSON.parse = text => {
		const value = parse(text);
		if (Array.isArray(value?.rows)) value.rows = value.rows.map(row => new Proxy(row, {get: (of, name) => {
			if (name === "message") window.drawn.push(of.name);
			if (name === "namespace") window.looked.add(of.name);
			return of[name];
		}}));
		return value;
	};
})()`

// watchAgain forgets the rows so far, once they are drawn.
const watchAgain = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))).then(() => { drawn = []; looked.clear(); return 0; })`

// changeSeen changes the evidence of a Rollout and checks that no row but its own is drawn again.
func (s *scene) changeSeen(tab *tab, i int, evidence, what string) {
	s.Helper()
	name := fmt.Sprintf("website-%04d", i)
	if err := s.changeRow(s.Context(), i, cmp.Or(evidence, "1")); err != nil {
		s.Fatal(err)
	}
	if evidence == "" {
		return
	}
	tab.until("the evidence is drawn", fmt.Sprintf(`[...document.querySelectorAll(".body .row")].some(r => r.innerText.includes(%q))`, evidence+" of"))
	for _, drawn := range ask[[]string](tab, `drawn`) {
		if drawn != name {
			s.Errorf("%s is drawn, not only %s", drawn, what)
		}
	}
	if looked := ask[int](tab, `looked.size`); looked > 45 {
		s.Errorf("%d of %d rows are looked at, of which one has changed", looked, *fleetSize)
	}
	ask[any](tab, watchAgain)
}

// measureFleet changes 50 Rollouts a second and prints what that costs the browser, after as long a time without changes: what happens then too is the machine's doing.
func (s *scene) measureFleet(tab *tab) {
	const each, rounds = 50, 10
	s.Logf("%d Rollouts: the first rows %.0f ms after the navigation began, %.0f ms after the data had come",
		*fleetSize, ask[float64](tab, `firstRows`), ask[float64](tab, `firstRows - dataAt`))
	tab.do(chromedp.KeyEvent(kb.Home))
	ask[any](tab, watchAnew)
	ask[any](tab, fmt.Sprintf(`new Promise(done => setTimeout(done, %d))`, 1000*rounds))
	s.logFrames(tab, "no changes")
	ask[any](tab, watchAnew)
	ticker := time.NewTicker(time.Second / each)
	defer ticker.Stop()
	began := time.Now()
	group, ctx := errgroup.WithContext(s.Context())
	for i := range each * rounds {
		<-ticker.C
		group.Go(func() error { return s.changeRow(ctx, i%*fleetSize, fmt.Sprint(i)) })
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
	s.logFrames(tab, fmt.Sprintf("%.0f changes a second", each*rounds/time.Since(began).Seconds()))
}

// watchAnew forgets the frames so far.
const watchAnew = `(frameTimes = [], longestTask = 0)`

// logFrames prints what was noted since watchAnew, and how busy the machine was.
func (s *scene) logFrames(tab *tab, during string) {
	busy, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		busy = []byte("unknown")
	}
	s.Logf("%s for %.0f s: %d frames, half of them within %.0f ms, 99 %% within %.0f ms, the longest %.0f ms, %d longer than 100 ms; the longest task of the page %.0f ms (0: below 50); the page uses %.0f MB; load average %s on %d cores",
		during, ask[float64](tab, `frameTimes.reduce((sum, f) => sum + f, 0) / 1000`), ask[int](tab, `frameTimes.length`),
		ask[float64](tab, `frameTimes.toSorted((a, b) => a - b)[Math.floor(frameTimes.length / 2)]`), ask[float64](tab, `frameTimes.toSorted((a, b) => a - b)[Math.floor(frameTimes.length * 0.99)]`),
		ask[float64](tab, `frameTimes.reduce((most, f) => Math.max(most, f), 0)`), ask[int](tab, `frameTimes.filter(f => f > 100).length`), ask[float64](tab, `longestTask`),
		ask[float64](tab, `performance.memory.usedJSHeapSize / 1e6`), strings.TrimSpace(string(busy)), runtime.NumCPU())
}

func (s *scene) changeRow(ctx context.Context, i int, evidence string) error {
	ro := &v1alpha1.Rollout{}
	if err := admin.Get(ctx, s.key(fmt.Sprintf("website-%04d", i)), ro); err != nil {
		return err
	}
	releasing("5d4f8c7b9", "7f9c6d5b4")(&ro.Status)
	ro.Status.Analysis.Evidence = evidence
	return admin.Status().Update(ctx, ro)
}
