// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

const apiPath = "/apis/metrics.smi-spec.io/v1alpha1"

// metricsServer answers paths with bodies, and keeps what it was asked.
type metricsServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// newMetricsServer serves bodies by path, relative to the API. A body that begins with a
// number has that status.
func newMetricsServer(t *testing.T, bodies map[string]string) *metricsServer {
	t.Helper()
	s := &metricsServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.String())
		s.mu.Unlock()
		path := strings.TrimPrefix(r.URL.Path, apiPath)
		if c := r.URL.Query().Get("continue"); c != "" {
			path += "?" + c
		}
		w.Header().Set("Content-Type", "application/json")
		body, found := bodies[path]
		if !found {
			http.NotFound(w, r)
			return
		}
		var status int
		if n, err := fmt.Sscanf(body, "%d ", &status); n == 1 && err == nil {
			w.WriteHeader(status)
			body = body[4:]
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// traffic runs the plugin against the server.
func (s *metricsServer) traffic(t *testing.T, line string) (status int, out, errs string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/none")
	var o, e bytes.Buffer
	args := append(strings.Fields(line), "--server", s.URL, "--cache-dir", t.TempDir())
	if !strings.Contains(line, " -n ") && !strings.Contains(line, " -A") {
		args = append(args, "-n", "foobar")
	}
	status = Run(t.Context(), args, nil, &o, &e)
	return status, o.String(), e.String()
}

// metricsItem is one as in the text of the specification.
func metricsItem(kind, name, edge string, success, failure int, more string) string {
	return fmt.Sprintf(`{"kind":"TrafficMetrics","resource":{"name":%q,"namespace":"foobar","kind":%q},"edge":%s,%s"timestamp":"2019-04-08T22:25:55Z",
"window":"30s","metrics":[{"name":"p99_response_latency","unit":"seconds","value":"1m"},{"name":"p90_response_latency","unit":"seconds","value":"1m"},
{"name":"p50_response_latency","unit":"seconds","value":"1m"},{"name":"success_count","value":"%d"},{"name":"failure_count","value":"%d"}]}`,
		name, kind, edge, more, success, failure)
}

func metricsList(items ...string) string {
	return `{"kind":"TrafficMetricsList","resource":{},"items":[` + strings.Join(items, ",") + `]}`
}

const (
	fromAll = `{"direction":"from","side":"server","resource":{}}`
	toAll   = `{"direction":"to","side":"client","resource":{}}`
)

func fromOne(kind, name string) string {
	text, err := json.Marshal(name)
	if err != nil {
		panic(err) // text can always be written
	}
	return fmt.Sprintf(`{"direction":"from","side":"server","resource":{"name":%s,"namespace":"foobar","kind":%q}}`, text, kind)
}

func toOne(kind, name string) string {
	return strings.NewReplacer("from", "to", "server", "client").Replace(fromOne(kind, name))
}

// pods are those of the example of the text.
var pods = metricsList(
	metricsItem("Pod", "foo-6846bf6b-gjmvz", fromAll, 54, 0, ""),
	metricsItem("Pod", "bar-f84f44b5b-dk4g9", fromAll, 20, 7, ""),
	metricsItem("Pod", "baz-69c8bb6d5b-gn5rt", fromAll, 46, 8, ""),
	metricsItem("Pod", "baz-69c8bb6d5b-gn5rt", toAll, 1, 0, ""))

func TestTop(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`%d {"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, code, message, reason, code)
	}
	server := newMetricsServer(t, map[string]string{
		"":                                   `{"kind":"APIResourceList"}`,
		"/namespaces/foobar/pods":            pods,
		"/pods":                              pods,
		"/namespaces/foobar/pods/one":        metricsItem("Pod", "one", fromAll, 30, 0, ""),
		"/namespaces/foobar/pods/one/edges":  metricsList(metricsItem("Pod", "one", fromOne("Pod", "other\x1b[31m"), 30, 0, "")),
		"/namespaces":                        metricsList(metricsItem("Namespace", "foobar", fromAll, 30, 0, "")),
		"/namespaces/foobar/jobs":            metricsList(),
		"/namespaces/foobar/deployments":     metricsList(metricsItem("Deployment", "load", toAll, 45, 15, ""), metricsItem("Deployment", "web", fromAll, 60, 0, ""), metricsItem("Deployment", "db", fromAll, 30, 0, "")),
		"/namespaces/foobar/deployments/web": metricsItem("Deployment", "web", fromAll, 60, 0, ""),
		"/namespaces/foobar/deployments/web/edges": metricsList(metricsItem("Deployment", "web", fromOne("Deployment", "load"), 60, 0, ""),
			metricsItem("Deployment", "web", toOne("Deployment", "db"), 20, 10, ""), metricsItem("Deployment", "web", toOne("Deployment", "cache"), 30, 0, "")),
		"/namespaces/foobar/deployments/db/edges":           metricsList(metricsItem("Deployment", "db", fromOne("Deployment", "web"), 30, 0, "")),
		"/namespaces/foobar/pods/foo-6846bf6b-gjmvz/edges":  metricsList(),
		"/namespaces/foobar/pods/bar-f84f44b5b-dk4g9/edges": metricsList(),
		"/namespaces/foobar/services":                       status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
		"/namespaces/foobar/statefulsets":                   status(403, "Forbidden", `statefulsets.metrics.smi-spec.io is forbidden: User "jane" cannot list resource "statefulsets" in API group "metrics.smi-spec.io" in the namespace "foobar"`),
		"/namespaces/foobar/daemonsets":                     `{"kind":"TrafficMetricsList","metadata":{"continue":"next"},"items":[` + metricsItem("DaemonSet", "a", fromAll, 1, 0, "") + `]}`,
		"/namespaces/foobar/daemonsets?next":                metricsList(metricsItem("DaemonSet", "b", fromAll, 1, 0, "")),
		"/namespaces/foobar/replicasets":                    `<html>`,
		"/namespaces/foobar/trafficsplits/web":              metricsList(metricsItem("TrafficSplit", "web", `{"direction":"from","side":"client","resource":{}}`, 90, 0, `"backend":{"apex":"web","name":"web-v1","weight":90},`), metricsItem("TrafficSplit", "web", `{"direction":"from","side":"client","resource":{}}`, 9, 1, `"backend":{"apex":"web","name":"web-v2","weight":10},`)),
	})
	tests := []struct {
		name, line string
		status     int
		out        string // all of it, when it ends with a newline
		errs       string // a part of it
	}{
		{"the example of the text", "top pods", cli.ExitDone, `
NAME                   SUCCESS   RPS      LATENCY_P99
bar-f84f44b5b-dk4g9    74.07%    0.9rps   1ms
baz-69c8bb6d5b-gn5rt   85.18%    1.8rps   1ms
foo-6846bf6b-gjmvz     100.00%   1.8rps   1ms
`, ""},
		{"all namespaces", "top pods -A --sort-by=success", cli.ExitDone, `
NAMESPACE   NAME                   SUCCESS   RPS      LATENCY_P99
foobar      bar-f84f44b5b-dk4g9    74.07%    0.9rps   1ms
foobar      baz-69c8bb6d5b-gn5rt   85.18%    1.8rps   1ms
foobar      foo-6846bf6b-gjmvz     100.00%   1.8rps   1ms
`, ""},
		{"what is sent", "top pods --direction=to", cli.ExitDone, `
NAME                   SUCCESS   RPS      LATENCY_P99
baz-69c8bb6d5b-gn5rt   100.00%   0.0rps   1ms
`, ""},
		{"what only sends is there too", "top deployments", cli.ExitDone, `
NAME   DIRECTION   SUCCESS   RPS      LATENCY_P99
db     from        100.00%   1.0rps   1ms
load   to          75.00%    2.0rps   1ms
web    from        100.00%   2.0rps   1ms
`, ""},
		{"only what is received", "top deployments --direction=from", cli.ExitDone, `
NAME   SUCCESS   RPS      LATENCY_P99
db     100.00%   1.0rps   1ms
web    100.00%   2.0rps   1ms
`, ""},
		{"what is sent, also by what receives", "top deployments --direction=to", cli.ExitDone, `
NAME   SUCCESS   RPS      LATENCY_P99
load   75.00%    2.0rps   1ms
web    83.33%    2.0rps   -
`, ""},
		{"both", "top deployments --direction=both", cli.ExitDone, `
NAME   DIRECTION   SUCCESS   RPS      LATENCY_P99
db     from        100.00%   1.0rps   1ms
load   to          75.00%    2.0rps   1ms
web    from        100.00%   2.0rps   1ms
web    to          83.33%    2.0rps   -
`, ""},
		{"both of one", "top deployment web --direction=both", cli.ExitDone, `
NAME   DIRECTION   SUCCESS   RPS      LATENCY_P99
web    from        100.00%   2.0rps   1ms
web    to          83.33%    2.0rps   -
`, ""},
		{"one", "top pod/one -o wide", cli.ExitDone, `
NAME   SUCCESS   RPS      LATENCY_P99   LATENCY_P50   LATENCY_P90   SUCCEEDED   FAILED   WINDOW
one    100.00%   1.0rps   1ms           1ms           1ms           30          0        30s
`, ""},
		{"the edges of one, whose names can't control the terminal", "top pod one --edges", cli.ExitDone, `
NAME   DIRECTION   EDGE          SUCCESS   RPS      LATENCY_P99
one    from        other^[[31m   100.00%   1.0rps   1ms
`, ""},
		{"a TrafficSplit by its backends", "top ts web", cli.ExitDone, `
NAME   BACKEND   WEIGHT   SUCCESS   RPS      LATENCY_P99
web    web-v1    90       100.00%   3.0rps   1ms
web    web-v2    10       90.00%    0.3rps   1ms
`, ""},
		{"a kind without namespaces", "top ns", cli.ExitDone, `
NAME     SUCCESS   RPS      LATENCY_P99
foobar   100.00%   1.0rps   1ms
`, ""},
		{"a list in pieces", "top ds", cli.ExitDone, `
NAME   SUCCESS   RPS      LATENCY_P99
a      100.00%   0.0rps   1ms
b      100.00%   0.0rps   1ms
`, ""},
		{"nothing measured", "top jobs", cli.ExitDone, "", "No traffic of jobs was measured in the namespace foobar in the last window."},
		{"JSON of nothing", "top jobs -o json", cli.ExitDone, `"items": []`, ""},
		{"a backend that is down", "top services", cli.ExitError, "", "TrafficMetrics can't be read at present"},
		{"no right", "top statefulsets", cli.ExitError, "", `the user "jane" may not list statefulsets.metrics.smi-spec.io in the namespace foobar`},
		{"one that is not there", "top pod none", cli.ExitError, "", "there is no pod none in the namespace foobar"},
		{"an answer that is none", "top rs", cli.ExitError, "", "read TrafficMetrics"},
		{"a kind without metrics", "top secrets", cli.ExitUsage, "", `"secrets" has no TrafficMetrics`},
		{"an unknown order", "top pods --sort-by=age", cli.ExitUsage, "", "--sort-by"},
		{"an unknown direction", "top pods --direction=up", cli.ExitUsage, "", "--direction"},
		{"an unknown form", "top pods -o xml", cli.ExitUsage, "", "--output"},
		{"a name and labels", "top pods one -l app=x", cli.ExitUsage, "", "not both"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, out, errs := server.traffic(t, test.line)
			if status != test.status || !strings.Contains(errs, test.errs) {
				t.Errorf("exit status %d, errors %q", status, errs)
			}
			if want, all := strings.CutPrefix(test.out, "\n"); all {
				if diff := cmp.Diff(want, trimmed(out)); diff != "" {
					t.Error(diff)
				}
			} else if !strings.Contains(out, test.out) {
				t.Errorf("got %s", out)
			}
		})
	}
}

// trimmed is a table without spaces at the ends of lines.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func TestLabelsSelectWhatIsShown(t *testing.T) {
	server := newMetricsServer(t, map[string]string{"/namespaces/foobar/pods": pods})
	if status, _, errs := server.traffic(t, "top pods -l app=foo,tier!=x"); status != cli.ExitDone {
		t.Fatal(errs)
	}
	want := []string{apiPath + "/namespaces/foobar/pods?labelSelector=app%3Dfoo%2Ctier%21%3Dx"}
	if diff := cmp.Diff(want, server.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAClusterWithoutMetricsIsToldOf(t *testing.T) {
	server := newMetricsServer(t, nil)
	if status, _, errs := server.traffic(t, "top pods"); status != cli.ExitError || !strings.Contains(errs, "this cluster does not serve TrafficMetrics") {
		t.Errorf("exit status %d: %s", status, errs)
	}
}

// deployments is the graph of the text: traffic calls foo and bar, foo calls bar, bar
// and baz call each other.
func deployments(t *testing.T) *metricsServer {
	t.Helper()
	bodies := map[string]string{}
	var list []string
	for name, callers := range map[string][]string{"traffic": nil, "foo": {"traffic"}, "bar": {"traffic", "foo", "baz"}, "baz": {"bar"}} {
		list = append(list, metricsItem("Deployment", name, fromAll, 1, 0, ""))
		var edges []string
		for _, caller := range callers {
			edges = append(edges, metricsItem("Deployment", name, fromOne("Deployment", caller), 60, 0, ""))
		}
		bodies["/namespaces/foobar/deployments/"+name+"/edges"] = metricsList(edges...)
	}
	bodies["/namespaces/foobar/deployments"] = metricsList(list...)
	return newMetricsServer(t, bodies)
}

func TestTopology(t *testing.T) {
	server := deployments(t)
	status, out, errs := server.traffic(t, "topology deployment")
	if status != cli.ExitDone {
		t.Fatal(errs)
	}
	if !strings.Contains(out, "bar") || strings.Count(out, "▶") < 4 || !strings.Contains(out, "traffic   bar") {
		t.Errorf("got\n%s", out)
	}
	for form, want := range map[string]string{
		"dot":  `"Deployment/foobar/traffic" -> "Deployment/foobar/foo" [label="100.00% 2.0rps 1ms"];`,
		"json": `"requestsPerSecond": 2`,
		"yaml": "requestsPerSecond: 2",
	} {
		if status, out, errs := server.traffic(t, "topology deploy -o "+form); status != cli.ExitDone || !strings.Contains(out, want) {
			t.Errorf("%s: exit status %d: %s\n%s", form, status, errs, out)
		}
	}
	if status, _, errs := server.traffic(t, "topology deployments -o svg"); status != cli.ExitUsage {
		t.Errorf("exit status %d: %s", status, errs)
	}
}

func TestATopologyNeedsTheEdgesOfEachResource(t *testing.T) {
	server := newMetricsServer(t, map[string]string{
		"/namespaces/foobar/pods":           metricsList(metricsItem("Pod", "one", fromAll, 1, 0, "")),
		"/namespaces/foobar/pods/one/edges": `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods.metrics.smi-spec.io \"one\" is forbidden: User \"jane\" cannot get resource \"pods/edges\" in API group \"metrics.smi-spec.io\" in the namespace \"foobar\""}`,
	})
	if status, _, errs := server.traffic(t, "topology pods"); status != cli.ExitError || !strings.Contains(errs, "may not get pods/edges") {
		t.Errorf("exit status %d: %s", status, errs)
	}
}

// Of many pods, one that ends between the list and the question for its edges is the rule.
func TestAPodThatHasGoneSinceItWasListedIsLeftOut(t *testing.T) {
	one, two := metricsItem("Pod", "one", fromAll, 1, 0, ""), metricsItem("Pod", "two", fromAll, 2, 0, "")
	server := newMetricsServer(t, map[string]string{
		"":                                  "{}", // the API is served
		"/namespaces/foobar/pods":           metricsList(one, two),
		"/namespaces/foobar/pods/one/edges": `404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"one\" not found"}`,
		"/namespaces/foobar/pods/two/edges": metricsList(metricsItem("Pod", "two", fromAll, 2, 0, "")),
	})
	for _, command := range []string{"topology pods", "top pods --direction=to", "top pods --direction=any"} {
		status, out, errs := server.traffic(t, command)
		if status != cli.ExitDone || strings.Contains(errs, "one") {
			t.Errorf("%s: exit status %d: %s\n%s", command, status, errs, out)
		}
	}
}
