// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/serin-dev/serin/config/golden"
)

func TestQueriesOfTheProfiles(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			p, err := Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, namespace := range []string{"", "shop"} {
				queries, err := p.queries(namespace, 30*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if len(queries) > maxQueries {
					t.Errorf("%d queries", len(queries))
				}
				fmt.Fprintf(&b, "# namespace %q\n", namespace)
				for _, q := range queries {
					expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
					if err != nil {
						t.Fatalf("%s: %v", q.text, err)
					}
					b.WriteString(expr.Pretty(0) + "\n\n")
				}
			}
			file := filepath.Join("testdata", name+".promql")
			golden.Check(t, file, b.String())
		})
	}
}

// shape is a query without its values.
func shape(t *testing.T, text string, values *[]string) string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var b strings.Builder
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		fmt.Fprintf(&b, "%T ", n)
		if s, ok := n.(*parser.VectorSelector); ok {
			b.WriteString(s.Name)
			for _, m := range s.LabelMatchers {
				fmt.Fprintf(&b, " %s%s", m.Name, m.Type)
				*values = append(*values, m.Value)
			}
		}
		return nil
	})
	return b.String()
}

// FuzzQueries looks for a namespace that changes what a query does.
func FuzzQueries(f *testing.F) {
	for _, s := range []string{"shop", `"`, `\`, "a\nb", `x"} or up{a="`, "}", "#", "\x00", "日本", "`", "shop\\\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, namespace string) {
		if namespace == "" || !utf8.ValidString(namespace) {
			return // no namespace has such a name, and the API server lets none through
		}
		for _, name := range Names() {
			p, err := Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := p.queries("shop", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.queries(namespace, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				var wantValues, values []string
				want := shape(t, plain[i].text, &wantValues)
				if diff := cmp.Diff(want, shape(t, got[i].text, &values)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				for j, v := range wantValues {
					if v == "shop" {
						v = namespace
					}
					if values[j] != v {
						t.Errorf("%s: %q instead of %q", name, values[j], v)
					}
				}
			}
		}
	})
}

func TestProfilesThatCannotBeAreNamedWithTheirFix(t *testing.T) {
	const good = `{side: client, counters: [{metric: x_total, statusLabel: code}], server: {service: {label: service}}}`
	for _, tt := range []struct{ name, text, want string }{
		{"a good one", "views: [" + good + "]", ""},
		{"none", "views: []", "views: empty; add at least one place of measurement"},
		{"a field that is none", "views: [" + good + "]\nfoo: bar", `the profile can't be read: error unmarshaling JSON: while decoding JSON: json: unknown field "foo"`},
		{"another side", "views: [{side: left}]", `views[0].side: "left"; give client or server`},
		{"no counters", "views: [{side: client}]", "views[0].counters: empty; name the counter of requests"},
		{"no outcome", "views: [{side: client, counters: [{metric: x_total}]}]", "views[0].counters[0].outcome: give exactly one of outcome, statusLabel and failureLabel"},
		{"two outcomes", "views: [{side: client, counters: [{metric: x_total, outcome: success, statusLabel: code}]}]", "views[0].counters[0].outcome: give exactly one of outcome, statusLabel and failureLabel"},
		{"an outcome that is none", "views: [{side: client, counters: [{metric: x_total, outcome: fine}]}]", `views[0].counters[0].outcome: "fine"; give success or failure`},
		{"PromQL for a metric", `views: [{side: client, counters: [{metric: "x or up", outcome: success}]}]`, `views[0].counters[0].metric: "x or up" is not the name of a metric`},
		{"PromQL for a label", `views: [{side: client, counters: [{metric: x, outcome: success, labels: {"a=~b": c}}]}]`, `views[0].counters[0].labels: "a=~b" is not the name of a label`},
		{"no server", "views: [{side: client, counters: [{metric: x, outcome: success}]}]", "views[0].server: empty; name the labels that tell who answered"},
		{"a form that is none", "views: [{side: client, counters: [{metric: x, outcome: success}], server: {service: {label: a, form: odd}}}]", `views[0].server.service.form: "odd"; give host or joined, or leave it out`},
		{"a kind that has no pods", "views: [{side: client, counters: [{metric: x, outcome: success}], server: {workload: {label: a}, workloadKind: nodes}}]", `views[0].server.workloadKind: "nodes"; give the plural of a kind that has pods, such as deployments`},
		{"a histogram without a unit", "views: [{side: client, counters: [{metric: x, outcome: success}], latency: {metric: x_bucket}}]", `views[0].latency.unit: ""; give s or ms`},
		{"no buckets", "views: [{side: client, counters: [{metric: x, outcome: success}], latency: {metric: x_sum, unit: s}}]", `views[0].latency.metric: "x_sum"; give the _bucket series of a classic histogram`},
		{"too many", "views: [" + strings.Repeat(good+", ", 5) + good + "]", "views: 6 counters and histograms; give at most 5, each is a query"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			if _, err := Load([]byte(tt.text)); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q", got)
			}
		})
	}
	if _, err := Builtin("../secret"); err == nil || !strings.Contains(err.Error(), "give one of envoy-gateway, istio, linkerd, nginx, traefik") {
		t.Errorf("%v", err)
	}
}
