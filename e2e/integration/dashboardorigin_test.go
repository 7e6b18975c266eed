// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// tries are what a page of others can do to reach the dashboard. Each is "refused" unless it reads an
// answer; none of them is told whether a request was carried out.
const tries = `(async (to, action) => {
	const said = {};
	const tried = async (what, f) => { try { said[what] = await f(); } catch (e) { said[what] = "refused"; } };
	const path = to + "/api/rollouts/%[2]s/website/actions";
	const with_ = {credentials: "include"};
	for (const type of ["text/plain", "application/x-www-form-urlencoded"])
		await tried(type + " unasked", () => fetch(path, {...with_, method: "POST", mode: "no-cors", headers: {"Content-Type": type}, body: action}).then(r => r.type));
	await tried("JSON", () => fetch(path, {...with_, method: "POST", headers: {"Content-Type": "application/json"}, body: action}).then(r => r.type));
	await tried("JSON as a beacon", async () => { navigator.sendBeacon(path, new Blob([action], {type: "text/plain"})); throw "nothing is told"; });
	await tried("read", () => fetch(to + "/api/viewer", with_).then(r => r.text()));
	await tried("read unasked", () => fetch(to + "/api/viewer", {...with_, mode: "no-cors"}).then(r => r.type));
	await tried("read a script", () => new Promise((done, failed) => { const s = document.createElement("script"); s.onload = () => done("loaded"); s.onerror = failed; s.src = to + "/app.js"; document.body.append(s); }));
	await tried("listen", () => new Promise((done, failed) => { const s = new EventSource(to + "/api/fleet", {withCredentials: true}); s.onopen = s.onmessage = () => done("heard"); s.onerror = () => { s.close(); failed(); }; }));
	await tried("a form", () => new Promise((done, failed) => {
		const frame = document.createElement("iframe"), form = document.createElement("form"), field = document.createElement("input");
		[frame.name, form.target, form.action, form.method, form.enctype] = ["f", "f", path, "POST", "text/plain"];
		[field.name, field.value] = [action.slice(0, -1) + ',"x":"', '"}'];
		form.append(field);
		document.body.append(frame, form);
		frame.onload = () => frame.contentWindow.location.href === "about:blank" ? 0 : done("read"); // throws for another origin
		form.submit();
		setTimeout(failed, 1000);
	}));
	return said;
})("%[1]s", '%[3]s')`

// Browsers send cookies, also those with SameSite=Strict, to every port of a host. So a page
// of another port is the nearest that a page of others can come.
func TestAPageOfAnotherPortDoesNothingInTheBrowser(t *testing.T) {
	t.Parallel()
	s := fleetOf(t)
	tab := s.openDashboard("", "website")
	tab.shows("60 % of the traffic goes to the canary")
	tab.mu.Lock()
	tab.hostile = true
	tab.mu.Unlock()
	var asked strings.Builder
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range r.Cookies() {
			asked.WriteString(c.Name + " ")
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>Another page</title><body>Another page")
	}))
	t.Cleanup(other.Close)
	tab.allow(other.URL)
	tab.do(chromedp.Navigate(other.URL + "/"))
	tab.shows("Another page")
	if !strings.Contains(asked.String(), "serin-dashboard-") {
		t.Fatalf("the browser sends the cookies %q to the other port: the test proves less than it says", asked.String())
	}
	const action = `{"action":"Abort","revision":"7f9c6d5b4","step":0,"reason":""}`
	for what, said := range ask[map[string]string](tab, fmt.Sprintf(tries, tab.origin, s.namespace, action)) {
		if said != "refused" {
			t.Errorf("%s: %s", what, said)
		}
	}
	if c := s.rolloutNamed("website").Spec.Control; c != nil {
		t.Errorf("it has decided: %+v", c)
	}

	// The same request of the page itself is carried out.
	tab.do(chromedp.Navigate(tab.origin + "/#/rollouts/" + s.namespace + "/website"))
	tab.shows("60 % of the traffic goes to the canary")
	if answer := tab.post(s.namespace, "website", action); !strings.HasPrefix(answer, "200 ") || s.rolloutNamed("website").Spec.Control == nil {
		t.Errorf("the page itself is answered %s", answer)
	}
}
