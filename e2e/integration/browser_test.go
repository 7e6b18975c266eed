// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands"
	"github.com/serin-dev/serin/config/testenv"
)

var pictures = flag.String("pictures", "", "folder for pictures of the pages of the dashboard")

// axe checks a page for what the WCAG asks for.
//
//go:embed testdata/dashboard/axe.min.js
var axe string

// chromium is one browser for all tests of the dashboard.
var chromium = sync.OnceValues(func() (context.Context, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	endChromium = func() { endBrowser(); endAllocator() }
	return browser, chromedp.Do(browser)
})

// endChromium ends the browser, if a test has started it.
var endChromium = func() {}

// browsed runs the tests, and ends their browser and the provider of identities.
type browsed struct{ audited }

func (b browsed) Run() int {
	status := b.audited.Run()
	endChromium()
	provider.Stop()
	return status
}

// tab is a tab of the browser with the page of one user.
type tab struct {
	*testing.T
	ctx    context.Context
	origin string
	end    func() // ends the command that serves the page

	mu      sync.Mutex
	allowed []string // origins
	hostile bool     // it shows a page that tries what browsers refuse, and they say so in many ways and at any time
	wrong   []string
}

// openDashboard runs the command as a user ("" = the administrator) and opens the address that it prints.
func (s *scene) openDashboard(user string, args ...string) *tab {
	s.Helper()
	address, end := s.serveDashboard(user, args...)
	u, err := url.Parse(address)
	if err != nil {
		s.Fatal(err)
	}
	tab := s.newTab(u.Scheme + "://" + u.Host)
	tab.end = end
	tab.do(chromedp.Navigate(address))
	return tab
}

// newTab is an empty tab for the dashboard under an origin.
func (s *scene) newTab(origin string) *tab {
	s.Helper()
	browser, err := chromium()
	if err != nil {
		testenv.Missing(s.T, "there is no Chromium to open the dashboard with: "+err.Error(), "install the package chromium")
	}
	tab := &tab{T: s.T, origin: origin}
	tab.allow(origin)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.listen)) // with cookies of its own
	s.Cleanup(cancel)
	tab.ctx = ctx
	call(tab, network.Enable, network.EnableParams{})
	call(tab, log.Enable, cdp.Empty{})
	tab.do(chromedp.EmulateViewport(1280, 860))
	s.Cleanup(func() {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		for _, what := range tab.wrong {
			s.Errorf("in the browser: %s", what)
		}
	})
	return tab
}

// serveDashboard runs the command until it has printed its address.
func (s *scene) serveDashboard(user string, args ...string) (address string, end func()) {
	s.Helper()
	line := []string{"--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace, "--cache-dir", s.TempDir(), "dashboard", "--no-open"}
	if user != "" {
		line = append(line, "--as", user, "--as-group", "system:authenticated")
	}
	ctx, cancel := context.WithCancel(s.Context())
	out, in := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var errs strings.Builder
		if status := commands.Run(ctx, append(line, args...), nil, in, &errs); status != 0 {
			s.Errorf("the command dashboard ended with status %d: %s", status, &errs)
		}
		_ = in.Close() // it is a pipe
	}()
	end = func() { cancel(); <-ended }
	s.Cleanup(end)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), "The dashboard is at "); found {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it is a pipe
			return address, end
		}
	}
	s.Fatal("the command dashboard printed no address")
	return "", end
}

// listen notes what must never happen in the page: an exception, a complaint of the browser (as of
// its security policy), and a request to another host.
func (t *tab) listen(event any) {
	var wrong string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork { // an answer that is an error is shown in the page
			wrong = e.Entry.Text
		}
	case *network.EventRequestWillBeSent:
		wrong = "a request to " + e.Request.URL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if wrong != "" && !t.hostile && !slices.ContainsFunc(t.allowed, func(origin string) bool { return strings.HasPrefix(wrong, "a request to "+origin+"/") }) {
		t.wrong = append(t.wrong, wrong)
	}
}

// allow lets the tab send requests to an origin.
func (t *tab) allow(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowed = append(t.allowed, origin)
}

// do does something in the page. A browser gives up the connections that it is making when the
// network of the machine changes, as it does while other tests start clusters: a user's loads the
// page again by itself, and one that is driven does not.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, neverAfter)
	defer cancel()
	err := chromedp.Do(ctx, actions...)
	for err != nil && strings.Contains(err.Error(), "net::ERR_NETWORK_CHANGED") {
		err = chromedp.Do(ctx, actions...)
	}
	if err != nil {
		t.Fatalf("in the browser: %v\nthe page:\n%s", err, t.text())
	}
}

// call sends a command to the tab.
func call[P, R any](t *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(t.ctx, command, params); err != nil {
		t.Fatalf("in the browser: %v", err)
	}
}

// ask evaluates an expression in the page, and waits for it if it is a promise.
func ask[V any](t *tab, expression string) V {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, neverAfter)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("in the browser: %v\nthe page:\n%s", err, t.text())
	}
	return value
}

// text is what the page says.
func (t *tab) text() string {
	ctx, cancel := context.WithTimeout(t.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// until waits for an expression in the page to hold.
func (t *tab) until(what, expression string) {
	t.Helper()
	if !poll(t.ctx, func(ctx context.Context) bool {
		held, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`))
		return err == nil && held
	}) {
		t.Fatalf("never: %s; the page:\n%s", what, t.text())
	}
}

// strike presses a key as a keyboard does: the page may keep it from writing a character.
func (t *tab) strike(key string) {
	t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: key}
		if kind == input.DispatchKeyEventTypeKeyDown {
			p.Text = key
		}
		call(t, input.DispatchKeyEvent, p)
	}
}

// shows waits until the page says something.
func (t *tab) shows(text string) {
	t.Helper()
	t.until("the page shows "+text, `document.body.innerText.includes(`+quoted(text)+`)`)
}

// lacks waits until the page does not say something.
func (t *tab) lacks(text string) {
	t.Helper()
	t.until("the page does not show "+text, `!document.body.innerText.includes(`+quoted(text)+`)`)
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string has a form in JSON
	}
	return string(out)
}

// press presses a button by what it says, with the keyboard: where it is may change at any time.
func (t *tab) press(label string) {
	t.Helper()
	button := fmt.Sprintf(`(//dialog[@open]//button | //main[not(.//dialog[@open])]//button)[normalize-space(text())=%q]`, label)
	t.do(chromedp.Focus(chromedp.Search(button)), chromedp.KeyEvent(kb.Enter))
}

// unfold opens what is folded, by its summary, with the keyboard.
func (t *tab) unfold(summary string) {
	t.Helper()
	t.do(chromedp.Focus(chromedp.Search(fmt.Sprintf(`//summary[text()=%q]`, summary))), chromedp.KeyEvent(kb.Enter))
	t.until(summary+" is open", fmt.Sprintf(`[...document.querySelectorAll("details[open] > summary")].some(s => s.textContent === %q)`, summary))
}

// confirm presses a button, reads the question, gives a reason, and presses the button of the question.
func (t *tab) confirm(label, question, reason string) {
	t.Helper()
	t.until(label+" is possible", fmt.Sprintf(`[...document.querySelectorAll(".actions button")].some(b => b.firstChild.textContent === %q && !b.ariaDisabled)`, label))
	t.press(label)
	t.until("the question", `document.querySelector("dialog[open]")?.innerText.includes(`+quoted(question)+`)`)
	if reason != "" {
		t.do(chromedp.SendKeys(chromedp.CSS(`dialog input`), reason))
	}
	t.press(label)
	t.until("the dialog closes", `!document.querySelector("dialog")`)
}

// whyNot is the reason that a button gives for being disabled; "" when it is not.
func (t *tab) whyNot(label string) string {
	t.Helper()
	return ask[string](t, fmt.Sprintf(`(b => document.getElementById(b?.getAttribute("aria-describedby"))?.textContent ?? "")
		([...document.querySelectorAll(".actions button")].find(b => b.firstChild.textContent === %q))`, label))
}

// accessible checks the page with axe, in light and dark, on a desk and on a phone.
func (t *tab) accessible(name string) {
	t.Helper()
	ask[any](t, axe+"; 0")
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range []struct {
			name          string
			width, height int64
		}{{"desk", 1280, 860}, {"phone", 390, 844}} {
			what := strings.Join([]string{name, scheme, size.name}, "-")
			call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
			t.do(chromedp.EmulateViewport(size.width, size.height))
			for _, violation := range ask[[]string](t, violations) {
				t.Errorf("%s: %s", what, violation)
			}
			if ask[bool](t, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s: the page has to be scrolled sideways", what)
			}
			t.picture(what)
		}
	}
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	t.do(chromedp.EmulateViewport(1280, 860))
}

// violations are those that axe finds, once the page is drawn.
const violations = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))
	.then(() => axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}))
	.then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; ")))`

// picture writes a picture of the page if pictures are asked for.
func (t *tab) picture(name string) {
	t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
