// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/metricsapi/observe"
)

func partyText(p observe.Party) string {
	s := p.Namespace + "/" + p.Pod
	if p.Address.IsValid() {
		s += "@" + p.Address.String()
	}
	if p.Workload.Name != "" {
		s += " " + cmp.Or(p.Workload.Kind.Resource, "?") + ":" + p.Workload.Name
	}
	if p.Service != "" {
		s += " svc:" + p.Service
	}
	return s
}

func lines(flows []observe.Flow) []string {
	var out []string
	for _, f := range flows {
		line := fmt.Sprintf("%s: %s → %s [%s %s] %v+%v", f.Side, partyText(f.Client), partyText(f.Server), f.Apex, f.Backend, f.Success, f.Failure)
		if f.Latency != nil {
			line += fmt.Sprint(" ", f.Latency.LE, f.Latency.Counts, f.Latency.Total)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// sample is a sample by the labels in the format of Prometheus.
func sample(value float64, pairs ...string) *model.Sample {
	m := model.Metric{}
	for _, p := range pairs {
		name, v, _ := strings.Cut(p, "=")
		m[model.LabelName(name)] = model.LabelValue(v)
	}
	return &model.Sample{Metric: m, Value: model.SampleValue(value)}
}

func services(names ...string) Services {
	return func(n types.NamespacedName) bool { return slices.Contains(names, n.String()) }
}

func TestFlowsAreReadFromTheLabelsOfEachDataPlane(t *testing.T) {
	linkerd := []string{"namespace=shop", "pod=load-a", "deployment=load", "dst_namespace=shop", "dst_pod=web-2", "dst_deployment=web", "authority=web.shop.svc.cluster.local:80", "dst_service=web-canary"}
	istio := []string{"source_workload_namespace=shop", "source_workload=load", "destination_service_namespace=shop", "destination_workload=web", "destination_service_name=web-canary"}
	for _, tt := range []struct {
		name, profile string
		// answers by the number of the query.
		answers map[int]model.Vector
		want    []string
	}{
		{"linkerd", "linkerd", map[int]model.Vector{
			0: {sample(8, append(linkerd, "classification=success")...), sample(2, append(linkerd, "classification=failure")...)},
			1: {sample(4, append(linkerd, "le=10")...), sample(10, append(linkerd, "le=+Inf")...), sample(9, append(linkerd, "le=100")...)},
			2: {sample(3, "namespace=shop", "pod=web-2", "deployment=web", "classification=success")},
		}, []string{
			"client: shop/load-a deployments:load → shop/web-2 deployments:web [web web-canary] 8+2 [0.01 0.1] [4 9] 10",
			"server: / → shop/web-2 deployments:web [ ] 3+0",
		}},
		{"linkerd, where no split is, and outside of the cluster", "linkerd", map[int]model.Vector{
			0: {
				sample(8, "namespace=shop", "pod=a", "dst_namespace=shop", "dst_pod=db-0", "authority=db.shop.svc.cluster.local:80", "dst_service=db", "classification=success"),
				sample(1, "namespace=shop", "pod=a", "authority=example.com:443", "classification=success"),
			},
		}, []string{"client: shop/a → / [ ] 1+0", "client: shop/a → shop/db-0 svc:db [ ] 8+0"}},
		{"istio; a client that left says nothing, and what no pod answered is a failure", "istio", map[int]model.Vector{
			0: {
				sample(7, append(istio, "response_code=200", "pod=load-a")...), sample(1, append(istio, "response_code=404", "pod=load-a")...), sample(9, append(istio, "response_code=0", "pod=load-a")...),
				sample(2, "source_workload_namespace=shop", "source_workload=load", "pod=load-a", "destination_service_namespace=shop", "destination_workload=unknown", "destination_service_name=web-canary", "response_code=503"),
			},
			2: {
				sample(5, append(istio, "response_code=200", "pod=web-2", "grpc_response_status=0")...), sample(3, append(istio, "response_code=200", "pod=web-2", "grpc_response_status=13")...),
				sample(4, append(istio, "response_code=200", "pod=web-2", "grpc_response_status=5")...),
			},
		}, []string{
			"client: shop/load-a ?:load → shop/ ?:web svc:web-canary [ ] 8+0",
			"client: shop/load-a ?:load → shop/ svc:web-canary [ ] 0+2",
			"server: shop/ ?:load → shop/web-2 ?:web svc:web-canary [ ] 9+3",
		}},
		{"envoy-gateway", "envoy-gateway", map[int]model.Vector{
			0: {sample(5, "envoy_endpoint_address=10.0.0.1:8080"), sample(1, "envoy_endpoint_address=[fd00::1]:8080")},
			1: {sample(2, "envoy_endpoint_address=10.0.0.1:8080")},
		}, []string{"client: / → /@10.0.0.1 [ ] 5+2", "client: / → /@fd00::1 [ ] 1+0"}},
		{"traefik", "traefik", map[int]model.Vector{
			0: {
				sample(5, "service=shop-web-canary-80@kubernetescrd", "code=200"), sample(2, "service=shop-web-canary-80@kubernetescrd", "code=502"),
				sample(3, "service=shop-web-http-80@kubernetesgateway", "code=200"), sample(9, "service=a-b-c-80@kubernetes", "code=200"), sample(9, "service=api@internal", "code=200"),
			},
			1: {sample(7, "service=shop-web-canary-80@kubernetescrd", "le=+Inf"), sample(6, "service=shop-web-canary-80@kubernetescrd", "le=0.1")},
		}, []string{"client: / → / [ ] 18+0", "client: / → shop/ svc:web [ ] 3+0", "client: / → shop/ svc:web-canary [ ] 5+2 [0.1] [6] 7"}},
		{"nginx", "nginx", map[int]model.Vector{
			0: {
				sample(5, "namespace=shop", "apex=web", "backend=web-canary", "client=10.0.0.3", "server=", "result=success"), sample(1, "namespace=shop", "apex=web", "backend=web-canary", "client=10.0.0.3", "result=failure"),
				sample(3, "namespace=shop", "apex=", "backend=web", "client=", "result=success"),
			},
		}, []string{"client: / → shop/ svc:web [web web] 3+0", "client: /@10.0.0.3 → shop/ [web web-canary] 5+1"}},
		{"numbers that are none", "traefik", map[int]model.Vector{
			0: {sample(math.NaN(), "service=shop-web-80@kubernetes", "code=200"), sample(math.Inf(1), "service=shop-web-80@kubernetes", "code=200"), sample(-1, "service=shop-web-80@kubernetes", "code=500"), sample(1, "service=shop-web-80@kubernetes", "code=none"), sample(0, "service=shop-web-80@kubernetes", "code=200")},
			1: {sample(math.NaN(), "service=shop-web-80@kubernetes", "le=+Inf"), sample(1, "service=shop-web-80@kubernetes", "le=x")},
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Builtin(tt.profile)
			if err != nil {
				t.Fatal(err)
			}
			queries, err := p.queries("", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			got := newFlowCounts(services("shop/web", "shop/web-canary", "a/b-c", "a-b/c"))
			for i, answer := range tt.answers {
				got.add(queries[i], answer)
			}
			if diff := gocmp.Diff(tt.want, lines(got.list(""))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFlowsOfANamespaceHaveOneEndInIt(t *testing.T) {
	p, err := Builtin("istio")
	if err != nil {
		t.Fatal(err)
	}
	queries, err := p.queries("shop", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := newFlowCounts(nil)
	for _, ends := range [][2]string{{"shop", "other"}, {"other", "shop"}, {"other", "other"}} {
		got.add(queries[0], model.Vector{sample(1, "source_workload_namespace="+ends[0], "destination_service_namespace="+ends[1], "response_code=200")})
	}
	if diff := gocmp.Diff([]string{"client: other/ → shop/ [ ] 1+0", "client: shop/ → other/ [ ] 1+0"}, lines(got.list("shop"))); diff != "" {
		t.Error(diff)
	}
}

func TestHosts(t *testing.T) {
	r := reader{}
	for host, want := range map[string]string{
		"web": "/web", "web:80": "/web", "web.shop": "shop/web", "web.shop.svc": "shop/web", "web.shop.svc.cluster.local:8080": "shop/web",
		"www.example.com": "/", "10.0.0.1:80": "/", "[fd00::1]:80": "/", "fd00::1": "/", "": "/",
	} {
		m := model.Metric{"h": model.LabelValue(host)}
		n := Name{Label: "h", Form: Host}
		if got := r.namespace(m, n) + "/" + r.name(m, n); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

// answering is a source of a server that answers as the test says.
func answering(t *testing.T, o Options, handle http.HandlerFunc) *Source {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := NewAPI(Server{Address: server.URL, TokenFile: file, UserAgent: "serin/test"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Profile.Views == nil {
		if o.Profile, err = Builtin("linkerd"); err != nil {
			t.Fatal(err)
		}
	}
	o.API = client
	o.Clock = clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 44, 0, time.UTC))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func answer(t *testing.T, w http.ResponseWriter, body any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

func TestAnObservationIsOneQueryForEachMetricAtTheEndOfTheLastWindow(t *testing.T) {
	var asked atomic.Int32
	s := answering(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{"time": "1772366430", "lookback_delta": "30s"} {
			if got := r.Form.Get(name); got != want {
				t.Errorf("%s=%s", name, got)
			}
		}
		if r.Header.Get("Authorization") != "Bearer s3cr3t" || r.Header.Get("User-Agent") != "serin/test" {
			t.Errorf("%v", r.Header)
		}
		answer(t, w, map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": []any{}}})
	})
	got, err := s.Observe(t.Context(), "shop")
	if err != nil || len(got.Flows) > 0 || got.Partial != "" || got.End.Unix() != 1772366430 || got.End.Sub(got.Start) != 30*time.Second {
		t.Errorf("%+v %v", got, err)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("%d queries", n)
	}
}

func TestWhatMayBeMissingIsSaid(t *testing.T) {
	empty := map[string]any{"status": "success", "warnings": []string{"secret"}, "data": map[string]any{"resultType": "vector", "result": []any{}}}
	s := answering(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, empty) })
	if got, err := s.Observe(t.Context(), ""); err != nil || got.Partial != "the metrics store says that its answer may be incomplete" {
		t.Errorf("%q %v", got.Partial, err)
	}
	delete(empty, "warnings")
	s = answering(t, Options{Window: 30 * time.Second, ScrapeInterval: 20 * time.Second}, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, empty) })
	if got, err := s.Observe(t.Context(), ""); err != nil || got.Partial != "the window of 30s is shorter than two scrapes, 40s: requests may be missing" {
		t.Errorf("%q %v", got.Partial, err)
	}
}

func TestErrorsAreToldWithoutWhatTheServerSaid(t *testing.T) {
	status := func(code int, kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":"secret"}`, kind)
		}
	}
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"a query that it does not take", status(http.StatusBadRequest, "bad_data"), "the metrics store does not accept the query"},
		{"a query that it can't answer", status(http.StatusUnprocessableEntity, "execution"), "the metrics store can't answer the query"},
		{"a timeout of its own", status(http.StatusUnprocessableEntity, "timeout"), "the metrics store gave up: the query takes too long"},
		{"no credentials", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusUnauthorized) }, "the metrics store does not accept the request; check its address and the credentials"},
		{"trouble", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusBadGateway) }, "the metrics store reports an error of its own"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<secret>") }, "the metrics store does not answer as a Prometheus does"},
		{"another type", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
		}, "the metrics store does not answer as a Prometheus does"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://secret.example", http.StatusFound)
		}, "the metrics store does not answer as a Prometheus does"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil { // otherwise the server does not see that the client left
				t.Error(err)
			}
			<-r.Context().Done()
		}, "the metrics store did not answer in time"},
		{"an answer without an end", func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "the answer of the metrics store is too long; ask for fewer resources, or have the store keep fewer series"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Timeout: time.Minute}
			if strings.HasSuffix(tt.want, "did not answer in time") {
				o.Timeout = 300 * time.Millisecond
			}
			s := answering(t, o, tt.handle)
			_, err := s.Observe(t.Context(), "shop")
			var unavailable *observe.UnavailableError
			if !errors.As(err, &unavailable) || unavailable.Message != tt.want {
				t.Errorf("%v", err)
			}
		})
	}
	gone := answering(t, Options{}, nil)
	client, err := NewAPI(Server{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	gone.options.API = client
	if _, err := gone.Observe(t.Context(), ""); err == nil || err.Error() != "the metrics store could not be reached" {
		t.Errorf("%v", err)
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for _, address := range []string{"", "prometheus:9090", "ftp://prometheus", "http://"} {
		if _, err := NewAPI(Server{Address: address}); err == nil || !strings.HasPrefix(err.Error(), "address: is not an http or https URL") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := NewAPI(Server{Address: "https://prometheus", CAFile: "/does/not/exist"}); err == nil {
		t.Error("certificates that are not there")
	}
	p, err := Builtin("nginx")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Profile: p, Window: 1500 * time.Millisecond}); err == nil || err.Error() != "window: 1.5s; give whole seconds" {
		t.Errorf("%v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no profile")
	}
}
