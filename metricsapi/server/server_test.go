// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// checkJSON compares JSON with a file.
func checkJSON(t *testing.T, name string, body []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%v:\n%s", err, body)
	}
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name+".json")
	golden.Check(t, file, string(got))
}

func TestAnswersHaveTheShapesOfTheSpecification(t *testing.T) {
	h := handler(t, shop(), nil)
	for name, path := range map[string]string{
		"discovery":          "/",
		"pods":               "/namespaces/shop/pods",
		"pod":                "/namespaces/shop/pods/web-1",
		"selected":           "/namespaces/shop/pods?labelSelector=app%3Dweb",
		"edges":              "/namespaces/shop/pods/web-1/edges",
		"namespace":          "/namespaces/shop",
		"namespace-edges":    "/namespaces/shop/edges",
		"trafficsplit":       "/namespaces/shop/trafficsplits/web",
		"nothing":            "/namespaces/shop/jobs",
		"without-numbers":    "/namespaces/shop/deployments/",
		"not-found":          "/namespaces/shop/pods/missing",
		"without-traffic":    "/namespaces/shop/pods/idle",
		"edges-of-a-missing": "/namespaces/shop/pods/missing/edges",
		"edges-without-any":  "/namespaces/shop/pods/idle/edges",
		"edges-of-one-label": "/namespaces/shop/pods/web-1/edges?labelSelector=app%3Dtill",
	} {
		t.Run(name, func(t *testing.T) { checkJSON(t, name, get(t, h, root+path).Body.Bytes()) })
	}
}

func TestTablesAreForUsers(t *testing.T) {
	h := handler(t, shop(), nil)
	for name, path := range map[string]string{
		"table-pods":   "/namespaces/shop/pods",
		"table-pod":    "/namespaces/shop/pods/web-1",
		"table-splits": "/trafficsplits",
		"table-edges":  "/namespaces/shop/pods/web-1/edges",
		"table-quiet":  "/deployments",
	} {
		t.Run(name, func(t *testing.T) {
			checkJSON(t, name, get(t, h, root+path, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Body.Bytes())
		})
	}
}

// names are the namespaces and names of the items of a list.
func names(t *testing.T, body []byte) (out []string, list metricsv1.TrafficMetricsList) {
	t.Helper()
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v:\n%s", err, body)
	}
	if list.Items == nil {
		t.Fatalf("not a list:\n%s", body)
	}
	for _, m := range list.Items {
		out = append(out, m.Namespace+"/"+m.Name)
	}
	return out, list
}

func TestListsHaveTheItemsThatAreAskedFor(t *testing.T) {
	h := handler(t, shop(), nil)
	for name, test := range map[string]struct {
		path string
		want []string
	}{
		"all namespaces, in order":             {"/pods", []string{"bank/till", "shop/web-1", "shop/web-2"}},
		"one namespace":                        {"/namespaces/bank/pods", []string{"bank/till"}},
		"a slash at the end":                   {"/namespaces/bank/pods/", []string{"bank/till"}},
		"a selector":                           {"/pods?labelSelector=app%3Dweb", []string{"shop/web-1", "shop/web-2"}},
		"a selector that is no pattern":        {"/pods?labelSelector=odd%3Da.b", []string{"shop/web-2"}},
		"a set":                                {"/pods?labelSelector=" + url.QueryEscape("app in (web,till),!odd"), []string{"bank/till", "shop/web-1"}},
		"a name":                               {"/pods?fieldSelector=metadata.name%3Dweb-2", []string{"shop/web-2"}},
		"a name that nothing has":              {"/pods?fieldSelector=metadata.name%3Dx", nil},
		"a kind that belongs to no namespace":  {"/namespaces?labelSelector=team%3Da", []string{"/shop"}},
		"a namespace that is not there":        {"/namespaces/none/pods", nil},
		"a limit that is more than there is":   {"/pods?limit=500", []string{"bank/till", "shop/web-1", "shop/web-2"}},
		"a resource version, as informers ask": {"/pods?resourceVersion=0", []string{"bank/till", "shop/web-1", "shop/web-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			response := get(t, h, root+test.path)
			got, _ := names(t, response.Body.Bytes())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChunksAddUpToTheList(t *testing.T) {
	w := shop()
	h := handler(t, w, nil)
	for _, path := range []string{"/pods", "/namespaces/shop/trafficsplits", "/namespaces/shop/pods/web-1/edges"} {
		var all []metricsv1.TrafficMetrics
		_, whole := names(t, get(t, h, root+path).Body.Bytes())
		token, chunks := "", 0
		for ; chunks == 0 || token != ""; chunks++ {
			_, chunk := names(t, get(t, h, root+path+"?limit=1&continue="+url.QueryEscape(token)).Body.Bytes())
			if len(chunk.Items) != 1 {
				t.Fatalf("%s: %d items in a chunk of 1", path, len(chunk.Items))
			}
			if rest := len(whole.Items) - chunks - 1; rest > 0 && (chunk.RemainingItemCount == nil || *chunk.RemainingItemCount != int64(rest)) {
				t.Errorf("%s: chunk %d says that %v remain, want %d", path, chunks, chunk.RemainingItemCount, rest)
			}
			all, token = append(all, chunk.Items...), chunk.Continue
		}
		if diff := cmp.Diff(whole.Items, all); diff != "" {
			t.Errorf("%s: -list +chunks:\n%s", path, diff)
		}
	}
}

func TestAChunkBeginsBehindTheLastWhateverHasGone(t *testing.T) {
	w := shop()
	h := handler(t, w, nil)
	_, first := names(t, get(t, h, root+"/pods?limit=2").Body.Bytes())
	w.items = slices.DeleteFunc(w.items, func(m metricsv1.TrafficMetrics) bool { return m.Resource.Name == "web-1" })
	got, _ := names(t, get(t, h, root+"/pods?limit=2&continue="+first.Continue).Body.Bytes())
	if diff := cmp.Diff([]string{"shop/web-2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// status reads an error.
func status(t *testing.T, body []byte) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		t.Fatalf("no Status (%v):\n%s", err, body)
	}
	return s
}

func TestWhatCantBeAnsweredIsRefusedWithAStatus(t *testing.T) {
	h := handler(t, shop(), nil)
	_, first := names(t, get(t, h, root+"/pods?limit=1").Body.Bytes())
	for name, test := range map[string]struct {
		path, accept, says string
		code               int
	}{
		"a field that is none":             {path: "/pods?fieldSelector=status.phase%3DRunning", code: 400, says: "labelSelector"},
		"a name that is not wanted":        {path: "/pods?fieldSelector=metadata.name!%3Dx", code: 400, says: "metadata.name=NAME"},
		"fields of edges":                  {path: "/namespaces/shop/pods/web-1/edges?fieldSelector=metadata.name%3Dx", code: 400, says: "labelSelector"},
		"a selector that can't be read":    {path: "/pods?labelSelector=a%3D%3D%3Db(", code: 400},
		"a selector of edges like that":    {path: "/namespaces/shop/pods/web-1/edges?labelSelector=a%3D%3D%3Db(", code: 400, says: "labelSelector"},
		"a pattern as a value":             {path: "/pods?labelSelector=app%3Dw.*", code: 400},
		"a token that is none":             {path: "/pods?limit=1&continue=%21%21", code: 400, says: "list again"},
		"a token of nothing":               {path: "/pods?limit=1&continue=e30", code: 400, says: "list again"},
		"the token of another list":        {path: "/jobs?limit=1&continue=" + first.Continue, code: 400, says: "list again"},
		"a watch":                          {path: "/pods?watch=true", code: 405, says: "watch"},
		"a resource that is not served":    {path: "/cronjobs", code: 404},
		"another sub-resource":             {path: "/namespaces/shop/pods/web-1/status", code: 404},
		"a form that the types don't have": {path: "/pods", accept: "application/vnd.kubernetes.protobuf", code: 406},
	} {
		t.Run(name, func(t *testing.T) {
			response := get(t, h, root+test.path, "Accept", test.accept)
			if response.Code != test.code {
				t.Fatalf("code %d, want %d:\n%s", response.Code, test.code, response.Body)
			}
			if test.code == 404 && !strings.Contains(response.Header().Get("Content-Type"), "json") {
				return // no such path: the answer is that of every API server
			}
			if test.accept != "" {
				return // the Status is in the form that was asked for
			}
			if s := status(t, response.Body.Bytes()); !strings.Contains(s.Message, test.says) || int(s.Code) != test.code {
				t.Errorf("want %q in %+v", test.says, s)
			}
		})
	}
}

// serve returns the code of an answer.
func serve(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestNothingIsWritten(t *testing.T) {
	h := handler(t, shop(), nil)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, root+"/namespaces/shop/pods/web-1", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if code := serve(h, r); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: code %d", method, code)
		}
	}
}

func TestNumbersThatAreNotToBeHadAreAStatus(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		says string
	}{
		"a source that says why":      {fmt.Errorf("query: %w", &observe.UnavailableError{Message: "no proxy answers"}), 503, "no proxy answers"},
		"a source that breaks":        {errors.New("secret words of a store"), 503, "log of serin metrics"},
		"a source that takes forever": {fmt.Errorf("query: %w", context.DeadlineExceeded), 504, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			w := shop()
			w.err = test.err
			h := handler(t, w, nil)
			for _, path := range []string{"/pods", "/namespaces/shop/pods/web-1", "/namespaces/shop/pods/web-1/edges"} {
				response := get(t, h, root+path)
				s := status(t, response.Body.Bytes())
				if response.Code != test.code || response.Header().Get("Retry-After") == "" || !strings.Contains(s.Message, test.says) || strings.Contains(s.Message, "secret") {
					t.Errorf("%s: code %d, headers %v, %+v", path, response.Code, response.Header(), s)
				}
			}
		})
	}
}

func TestWhatIsMissingIsAWarning(t *testing.T) {
	w := shop()
	w.warning = `2 of 3 proxies do not answer`
	h := handler(t, w, nil)
	for _, path := range []string{"/pods", "/namespaces/shop/pods/web-1", "/namespaces/shop/pods/web-1/edges"} {
		if got := get(t, h, root+path).Header().Get("Warning"); got != `299 - "2 of 3 proxies do not answer"` {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestRightsAreThoseOfTheSpecification(t *testing.T) {
	for name, test := range map[string]struct {
		path  string
		right string
	}{
		"a list":                            {"/namespaces/shop/pods", "list pods in shop"},
		"a list of all namespaces":          {"/pods", "list pods in "},
		"one":                               {"/namespaces/shop/pods/web-1", "get pods in shop"},
		"edges":                             {"/namespaces/shop/pods/web-1/edges", "get pods/edges in shop"},
		"a namespace":                       {"/namespaces/shop", "get namespaces in shop"},
		"edges of a namespace":              {"/namespaces/shop/edges", "get namespaces/edges in shop"},
		"edges of a namespace with a slash": {"/namespaces/shop/edges/", "get namespaces/edges in shop"},
	} {
		t.Run(name, func(t *testing.T) {
			if response := get(t, handler(t, shop(), rights{test.right: true}), root+test.path); response.Code != http.StatusOK {
				t.Errorf("with %q: %d\n%s", test.right, response.Code, response.Body)
			}
			if response := get(t, handler(t, shop(), rights{"list edges in shop": true}), root+test.path); response.Code != http.StatusForbidden {
				t.Errorf("without %q: %d\n%s", test.right, response.Code, response.Body)
			}
		})
	}
}

func TestTheProviderIsAskedForWhatThePathSays(t *testing.T) {
	w := shop()
	h := handler(t, w, nil)
	for path, want := range map[string]observe.Request{
		"/namespaces/shop/pods/web-1/edges": {Kind: observe.Pods, Namespace: "shop", Name: "web-1"},
		"/namespaces/shop/edges":            {Kind: observe.Namespaces, Name: "shop"},
		"/namespaces/shop":                  {Kind: observe.Namespaces, Name: "shop"},
		"/nodes":                            {Kind: observe.Nodes},
		"/namespaces/shop/services":         {Kind: observe.Services, Namespace: "shop"},
	} {
		get(t, h, root+path)
		got := w.asked
		if got.Selector == nil || !got.Selector.Empty() {
			t.Errorf("%s: selector %v", path, got.Selector)
		}
		got.Selector = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
}

func TestAnswersComeAsYAMLToo(t *testing.T) {
	response := get(t, handler(t, shop(), nil), root+"/namespaces/shop/pods", "Accept", "application/yaml")
	var list metricsv1.TrafficMetricsList
	if err := yaml.Unmarshal(response.Body.Bytes(), &list); err != nil || len(list.Items) != 2 {
		t.Errorf("%v:\n%s", err, response.Body)
	}
}

func TestTheTypesAreDescribed(t *testing.T) {
	h := handler(t, shop(), nil)
	for path, has := range map[string][]string{
		"/openapi/v2":        {`"/apis/metrics.smi-spec.io/v1alpha1/namespaces/{namespace}/pods/{name}/edges"`, "success_count"},
		"/openapi/v3" + root: {`"/apis/metrics.smi-spec.io/v1alpha1/namespaces/{name}/edges"`, "success_count", "io.k8s.api.core.v1.ObjectReference"},
	} {
		response := get(t, h, path, "Accept", "application/json")
		for _, text := range has {
			if !strings.Contains(response.Body.String(), text) {
				t.Errorf("%s: code %d, no %s", path, response.Code, text)
			}
		}
	}
}

// kubectl explain finds a type by its group, version and kind.
func TestTheTypesAreFoundByTheirKind(t *testing.T) {
	response := get(t, handler(t, shop(), nil), "/openapi/v3"+root, "Accept", "application/json")
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := json.Unmarshal(response.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, schema := range document.Components.Schemas {
		for _, kind := range schema.Kinds {
			found[kind.Version+" "+kind.Kind] = true
		}
	}
	for _, kind := range []string{"v1alpha1 TrafficMetrics", "v1alpha1 TrafficMetricsList"} {
		if !found[kind] {
			t.Errorf("no %s among %v", kind, found)
		}
	}
}

func TestDiscoveryInOneRequestNamesEveryResource(t *testing.T) {
	response := get(t, handler(t, shop(), nil), "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	for _, kind := range observe.Kinds {
		if !strings.Contains(response.Body.String(), `"resource":"`+kind.Resource+`"`) {
			t.Errorf("no %s in:\n%s", kind.Resource, response.Body)
		}
	}
}
