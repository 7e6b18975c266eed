// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

var scope = Scope{Args: map[string]string{"service": "web-canary", "path": "/a"}, Namespace: "shop"}

func TestArgumentsBecomeLabelValuesAndQueriesStayInTheirNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		query, want string
		scope       Scope
	}{
		"an argument is filled in": {
			`rate(http_requests_total{service="{{args.service}}"}[1m])`,
			`rate(http_requests_total{namespace="shop",service="web-canary"}[1m])`, scope,
		},
		"it may be a part of the value": {
			`up{job!="x-{{ args.service }}-y"}`, `up{job!="x-web-canary-y",namespace="shop"}`, scope,
		},
		"every selector is confined": {
			`sum(a) / on (pod) (b{x="1"} offset 5m) + max_over_time(rate(c[1m])[5m:15s])`,
			`sum(a{namespace="shop"}) / on (pod) (b{namespace="shop",x="1"} offset 5m) + max_over_time(rate(c{namespace="shop"}[1m])[5m:15s])`, scope,
		},
		"another namespace finds nothing": {
			`up{namespace="other"}`, `up{namespace="other",namespace="shop"}`, scope,
		},
		"an expression for all namespaces is confined too": {
			`up{namespace=~".*"}`, `up{namespace="shop",namespace=~".*"}`, scope,
		},
		"the own namespace is not repeated": {`up{namespace="shop"}`, `up{namespace="shop"}`, scope},
		"a trusted query is left alone":     {`up{x="{{args.path}}"}`, `up{x="/a"}`, Scope{Args: scope.Args}},
		"another label may carry it":        {`up`, `up{ns="shop"}`, Scope{Namespace: "shop", NamespaceLabel: "ns"}},
		"a scalar needs no series":          {`1 + 1`, `1 + 1`, scope},
		"braces in a regular expression":    {`up{x=~"a{2}"}`, `up{namespace="shop",x=~"a{2}"}`, scope},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := number(test.query, test.scope)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestQueriesThatAreRefusedSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct{ query, want string }{
		"no PromQL":                             {`sum(`, "is not PromQL at character"},
		"nothing":                               {``, "is not PromQL"},
		"an argument that is not declared":      {`up{x="{{args.absent}}"}`, "label x: there is no argument absent; declare it in args"},
		"an argument in an expression":          {`up{x=~"{{args.service}}"}`, "label x: an argument can't be part of a regular expression; use = or !="},
		"an argument in a negative expression":  {`up{x!~"{{args.service}}"}`, "label x: an argument can't be part of a regular expression"},
		"an argument as the name of a metric":   {`{__name__="{{args.service}}"}`, "the name of a metric can't be an argument"},
		"an argument in another string":         {`label_replace(up, "a", "{{args.service}}", "b", "c")`, "an argument can only be the value of a label matcher"},
		"an argument in a grouping":             {`sum by ("{{args.service}}") (up)`, "an argument can only be the value of a label matcher"},
		"an argument in a matching":             {`a / on ("{{args.service}}") b`, "an argument can only be the value of a label matcher"},
		"an argument as the name of a label":    {`up{"{{args.service}}"="x"}`, "an argument can only be the value of a label matcher"},
		"an argument as a number":               {`up > {{args.service}}`, "is not PromQL at character"},
		"something else between the braces":     {`up{x="{{service}}"}`, "what is between {{ and }} is not args.NAME"},
		"braces that do not close":              {`up{x="{{args.service"}`, "what is between {{ and }} is not args.NAME"},
		"samples of a stretch of time":          {`up[5m]`, "gives a range vector, not a number"},
		"a string":                              {`"x"`, "gives a string, not a number"},
		"a function that the server may not do": {`limitk(1, up)`, "is not PromQL"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := number(test.query, scope)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestCountersAreSelectorsAndNothingElse(t *testing.T) {
	if got, err := counter(`x_total{service="{{args.service}}"}`, scope, "2m"); err != nil || got != `x_total{namespace="shop",service="web-canary"}[2m]` {
		t.Errorf("got %q, %v", got, err)
	}
	for query, want := range map[string]string{
		`rate(x_total[1m])`:  "is more than a selector",
		`sum(x_total)`:       "is more than a selector",
		`x_total offset 5m`:  "has an offset or @",
		`x_total @ 1`:        "has an offset or @",
		`x_total @ end()`:    "has an offset or @",
		`x_total offset -1s`: "has an offset or @",
	} {
		if got, err := counter(query, scope, "2m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v", query, got, err)
		}
	}
}

// shape is a query with every value of a matcher left out.
func shape(t *testing.T, query string) (types []string, values []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Fatalf("%q is no query: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if node == nil {
			return nil
		}
		types = append(types, strings.Repeat(" ", len(path))+reflect.TypeOf(node).String())
		if s, ok := node.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				types = append(types, m.Name+m.Type.String())
				if m.Name == "service" {
					values = append(values, m.Value)
				}
			}
		}
		return nil
	})
	return types, values
}

func FuzzAnArgumentNeverChangesTheShapeOfAQuery(f *testing.F) {
	const query = `sum(rate(x_total{service="{{args.service}}",code=~"5.."}[1m])) / sum(rate(x_total{service="{{args.service}}"}[1m]))`
	for _, x := range []string{
		"", "web", `"`, `\`, `"} or up{x="`, "`", "a\nb", "\x00", "\xff\xfe", "{{args.service}}", "}}", "ä漢", `\x41`, "'", "#", "$1", strings.Repeat("\\\"", 50),
	} {
		f.Add(x, "shop")
		f.Add("web", x)
	}
	f.Fuzz(func(t *testing.T, value, namespace string) {
		got, err := number(query, Scope{Args: map[string]string{"service": value}, Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		want, err := number(query, Scope{Args: map[string]string{"service": "x"}, Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		gotShape, values := shape(t, got)
		wantShape, _ := shape(t, want)
		if !reflect.DeepEqual(gotShape, wantShape) {
			t.Errorf("%q changed the query to %s", value, got)
		}
		for _, v := range values {
			if v != value {
				t.Errorf("%q arrives as %q", value, v)
			}
		}
		if len(values) != 2 {
			t.Errorf("%d values", len(values))
		}
	})
}

func FuzzNoQueryEscapesItsNamespace(f *testing.F) {
	for _, q := range []string{
		`up`, `sum(a)/sum(b{namespace="x"})`, `{__name__=~".+"}`, `absent(up{a="b"})`, `max_over_time(up[1h:1m])`, `a and on() b unless c`,
		`{"my.metric"}`, `x{namespace!="shop"}`, `label_replace(up, "namespace", "shop", "", "")`, `count_values("v", up)`, `-up`, `(up)`, `up @ start()`, `{a="b" or c="d"}`,
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := number(query, scope)
		if err != nil {
			return
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(got)
		if err != nil {
			t.Fatalf("%q became %q, which is no query: %v", query, got, err)
		}
		for _, matchers := range parser.ExtractSelectors(expr) {
			confined := false
			for _, m := range matchers {
				confined = confined || m.Name == "namespace" && m.Type == 0 && m.Value == "shop"
			}
			if !confined {
				t.Errorf("%q became %q", query, got)
			}
		}
	})
}
