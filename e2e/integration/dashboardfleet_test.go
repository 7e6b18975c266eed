// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sync/errgroup"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var fleetSize = flag.Int("fleet", 150, "how many Rollouts TestManyRolloutsAreDrawnAsTheyAreSeen has; with 1000 or more it changes 50 of them a second and prints figures")

// large is the size of a fleet from which on figures say something.
const large = 1000

// watchFirstRows notes in the page when the data has come, and when the first rows are drawn.
const watchFirstRows = `(() => {
	window.dataAt = window.firstRows = 0;
	const parse = JSON.parse;
	JSON.parse = text => {
		if (!window.dataAt && text.length > 50000) window.dataAt = performance.now();
		return parse(text);
	};
	const look = () => {
		if (document.querySelector(".body .row")) window.firstRows = performance.now();
		else requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})()`

// watchFrames notes in a page the times between its frames, its longest task, and its longest frame by the browser's own account: how long scripts, styles and layout took of it.
const watchFrames = `(() => {
	let last = 0;
	window.watchAnew = () => { window.frameTimes = []; window.longestTask = 0; window.longestFrame = {duration: 0, scripts: 0, layout: 0}; };
	watchAnew();
	new PerformanceObserver(list => {
		for (const task of list.getEntries()) window.longestTask = Math.max(window.longestTask, task.duration);
	}).observe({type: "longtask"});
	new PerformanceObserver(list => {
		for (const f of list.getEntries()) if (f.duration > window.longestFrame.duration) {
			window.longestFrame = {
				duration: f.duration, scripts: f.scripts.reduce((sum, s) => sum + s.duration, 0), layout: f.styleAndLayoutStart ? f.startTime + f.duration - f.styleAndLayoutStart : 0,
			};
		}
	}).observe({type: "long-animation-frame"});
	const look = () => {
		const now = performance.now();
		if (last) window.frameTimes.push(now - last);
		last = now;
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})()`

// ticksOnly makes an empty page that does no more than write a number ten times a second, as often as the list is drawn again: the frames that it drops are dropped by the machine.
const ticksOnly = `(() => {
	let n = 0;
	setInterval(() => document.body.textContent = ++n, 100);
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
	watch := watchRows
	if *fleetSize >= large {
		watch = watchFirstRows + ";" + watchFrames
	}
	call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
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
	s.changeSeen(tab, "41.1", "the row that has changed", 3)
	s.changeSeen(tab, "52.2", "the rows that have changed, of which one is not seen", 99, 6)
	for range 2 {
		tab.do(chromedp.Click(chromedp.Search(`//button[starts-with(., "Evidence")]`)))
	}
	tab.until("the rows are sorted by evidence, most first", `document.querySelector(".body [aria-rowindex='2'] a").textContent === "website-0006"`)
	ask[any](tab, watchAgain)
	s.changeSeen(tab, "97.9", "the row that has changed, while others move", 12)
	if first := ask[string](tab, `document.querySelector(".body [aria-rowindex='2'] a").textContent`); first != "website-0012" {
		t.Errorf("%s comes first, not website-0012", first)
	}
}

// watchRows notes which rows are drawn, by what only drawing them reads; which are looked at in order
// to sort, filter or count them; which have something else in them written, but for times that go by;
// and what goes through all rows.
const watchRows = `(() => {
	window.drawn = new Set(); window.looked = new Set(); window.written = new Set(); window.passes = [];
	const parse = JSON.parse;
	JSON.parse = text => {
		const value = parse(text);
		if (Array.isArray(value?.rows)) value.rows = value.rows.map(row => new Proxy(row, {get: (of, name) => {
			if (name === "message") drawn.add(of.name);
			looked.add(of.name);
			return of[name];
		}}));
		return value;
	};
	for (const kind of [Array, Map, Set]) {
		for (const name of [Symbol.iterator, "values", "entries", "keys", "forEach", "map", "flatMap", "filter", "reduce", "some", "every", "find", "findIndex", "indexOf", "includes", "concat", "join", "sort", "toSorted"]) {
			const real = kind.prototype[name];
			if (real) kind.prototype[name] = function (...args) {
				if ((this.length ?? this.size) >= 100) passes.push(kind.name + " " + String(name));
				return real.apply(this, args);
			};
		}
	}
	new MutationObserver(records => {
		for (let i = 0; i < records.length; i++) { // the list of records may be long: no pass of the page
			const target = records[i].target;
			const at = target instanceof Element ? target : target.parentElement;
			const row = at?.closest(".body .row");
			if (row && row !== at && !at.closest("time")) written.add(row.querySelector("a").textContent);
		}
	}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
})()`

// watchAgain forgets the rows so far, once they are drawn.
const watchAgain = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))).then(() => { [drawn, looked, written].forEach(s => s.clear()); passes = []; return 0; })`

// changeSeen changes the evidence of Rollouts, the last of which is seen, and checks that nothing is done for other rows.
func (s *scene) changeSeen(tab *tab, evidence, what string, changed ...int) {
	s.Helper()
	var names []string
	for _, i := range changed {
		names = append(names, fmt.Sprintf("website-%04d", i))
		if err := s.changeRow(s.Context(), i, evidence); err != nil {
			s.Fatal(err)
		}
	}
	seen := names[len(names)-1]
	tab.until("the evidence is drawn", fmt.Sprintf(`[...document.querySelectorAll(".body .row")].some(r => r.innerText.includes(%q) && r.innerText.includes(%q))`, seen, evidence+" of"))
	for _, of := range []string{"drawn", "looked", "written"} {
		for _, name := range ask[[]string](tab, `[...`+of+`]`) {
			if !slices.Contains(names, name) {
				s.Errorf("%s: %s is among them, which are to be no more than %s", of, name, what)
			}
		}
	}
	if !slices.Contains(ask[[]string](tab, `[...drawn]`), seen) || !slices.Contains(ask[[]string](tab, `[...written]`), seen) {
		s.Errorf("%s is not among the rows that are noted as drawn and written", seen)
	}
	if passes := ask[[]string](tab, `passes`); len(passes) > 0 {
		s.Errorf("of %d rows %d have changed, and all are gone through by %s", *fleetSize, len(changed), strings.Join(passes, ", "))
	}
	ask[any](tab, watchAgain)
}

// measureFleet changes 50 Rollouts a second and prints what that costs the browser, after as long a time without changes. An empty page beside it shows what the machine itself does to frames meanwhile.
func (s *scene) measureFleet(tab *tab) {
	const each, rounds = 50, 10
	s.Logf("%d Rollouts: the first rows %.0f ms after the navigation began, %.0f ms after the data had come; the longest task of the page until then %.0f ms (0: below 50)",
		*fleetSize, ask[float64](tab, `firstRows`), ask[float64](tab, `firstRows - dataAt`), ask[float64](tab, `longestTask`))
	call(tab, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	tab.do(chromedp.KeyEvent(kb.Home))
	empty := s.newTab("about:blank")
	ask[any](empty, watchFrames+";"+ticksOnly)
	s.measureFrames(tab, empty, "no changes", func() {
		ask[any](empty, fmt.Sprintf(`new Promise(done => setTimeout(done, %d))`, 1000*rounds))
	})
	s.measureFrames(tab, empty, fmt.Sprintf("%d changes, %d a second if the API server takes them", each*rounds, each), func() {
		ticker := time.NewTicker(time.Second / each)
		defer ticker.Stop()
		group, ctx := errgroup.WithContext(s.Context())
		for i := range each * rounds {
			<-ticker.C
			group.Go(func() error { return s.changeRow(ctx, i%*fleetSize, strconv.Itoa(i)) })
		}
		if err := group.Wait(); err != nil {
			s.Fatal(err)
		}
	})
}

// measureFrames prints what happens to the frames of the fleet and of an empty page during something, and how busy the machine was.
func (s *scene) measureFrames(tab, empty *tab, what string, during func()) {
	call(tab, heapprofiler.CollectGarbage, cdp.Empty{})
	before, began := tab.metrics(), time.Now()
	ask[any](tab, `watchAnew()`)
	ask[any](empty, `watchAnew()`)
	during()
	s.logFrames(tab, what+", Rollouts")
	s.logFrames(empty, what+", an empty page beside it")
	after, seconds := tab.metrics(), time.Since(began).Seconds()
	call(tab, heapprofiler.CollectGarbage, cdp.Empty{})
	left := tab.metrics()
	busy, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		busy = []byte("unknown")
	}
	of := func(name string) float64 { return 1000 * (after[name] - before[name]) / seconds }
	s.Logf("%s for %.0f s: of each second the main thread of the page computes %.0f ms, of which scripts %.0f ms, styles %.0f ms, layout %.0f ms; its memory was %.1f MB and is %.1f MB (without garbage), its nodes %.0f and %.0f; load average %s on %d cores",
		what, seconds, of("TaskDuration"), of("ScriptDuration"), of("RecalcStyleDuration"), of("LayoutDuration"),
		before["JSHeapUsedSize"]/1e6, left["JSHeapUsedSize"]/1e6, before["Nodes"], left["Nodes"], strings.TrimSpace(string(busy)), runtime.NumCPU())
}

// metrics are what the browser says of a page. Times are those of the processor in its main thread, in seconds since it was asked for first.
func (t *tab) metrics() map[string]float64 {
	t.Helper()
	answer, err := chromedp.Call(t.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatalf("in the browser: %v", err)
	}
	metrics := map[string]float64{}
	for _, metric := range answer.Metrics {
		metrics[metric.Name] = metric.Value
	}
	return metrics
}

// logFrames prints what was noted of the frames of a page.
func (s *scene) logFrames(tab *tab, of string) {
	s.Logf("%s: %d frames, half of them within %.0f ms, 99 %% within %.0f ms, the longest %.0f ms, %d longer than 100 ms; the longest task %.0f ms (0: below 50); by the browser's account the longest frame worked %.0f ms (0: below 50), of which scripts %.0f ms, styles and layout %.0f ms",
		of, ask[int](tab, `frameTimes.length`),
		ask[float64](tab, `frameTimes.toSorted((a, b) => a - b)[Math.floor(frameTimes.length / 2)]`), ask[float64](tab, `frameTimes.toSorted((a, b) => a - b)[Math.floor(frameTimes.length * 0.99)]`),
		ask[float64](tab, `frameTimes.reduce((most, f) => Math.max(most, f), 0)`), ask[int](tab, `frameTimes.filter(f => f > 100).length`),
		ask[float64](tab, `longestTask`), ask[float64](tab, `longestFrame.duration`), ask[float64](tab, `longestFrame.scripts`), ask[float64](tab, `longestFrame.layout`))
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
