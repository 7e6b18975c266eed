// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

func measure(t *testing.T, s sourcetest.Secrets, q Query) (source.Sample, error) {
	t.Helper()
	m, err := New(sourcetest.Caller(time.Second), s, q)
	if err != nil {
		t.Fatal(err)
	}
	return m.Measure(t.Context(), sourcetest.Now)
}

func TestTheNumberInAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		body, path string
		want       float64
	}{
		"a field":             {`{"data":{"rate":0.25}}`, `{.data.rate}`, .25},
		"without braces":      {`{"data":{"rate":0.25}}`, `.data.rate`, .25},
		"with the root":       {`{"data":{"rate":0.25}}`, `$.data.rate`, .25},
		"an element":          {`[1,[2,3]]`, `{[1][0]}`, 2},
		"the last element":    {`{"a":[1,2,3]}`, `{.a[-1:]}`, 3},
		"a filter":            {`{"a":[{"n":"x","v":1},{"n":"y","v":2}]}`, `{.a[?(@.n=="y")].v}`, 2},
		"a key with dots":     {`{"a.b":7}`, `{.a\.b}`, 7},
		"a number in a text":  {`{"v":" 12.5 "}`, `{.v}`, 12.5},
		"a large number":      {`{"v":1e300}`, `{.v}`, 1e300},
		"the whole document":  {`3`, `{$}`, 3},
		"one of a wildcard's": {`{"a":[5]}`, `{.a[*]}`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := measure(t, nil, Query{URL: sourcetest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, test.body) }), JSONPath: test.path})
			if diff := cmp.Diff(source.Sample{At: sourcetest.Now, Value: test.want}, s); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestConformance(t *testing.T) {
	sourcetest.Conformance[Query]{
		New:   New,
		Query: func(address string) Query { return Query{URL: address, JSONPath: `{.v}`} },
		Answers: map[string]sourcetest.Answer{
			"no such field":      {Body: `{"x":1}`, Want: source.NoData},
			"null":               {Body: `{"v":null}`, Want: source.NoData},
			"a truth":            {Body: `{"v":true}`, Want: source.NotANumber},
			"an object":          {Body: `{"v":{"confidential":1}}`, Want: source.NotANumber},
			"a list":             {Body: `{"v":[1]}`, Want: source.NotANumber},
			"a text":             {Body: `{"v":"confidential"}`, Want: source.NotANumber},
			"an empty text":      {Body: `{"v":""}`, Want: source.NotANumber},
			"NaN in a text":      {Body: `{"v":"NaN"}`, Want: source.NotANumber},
			"infinity in a text": {Body: `{"v":"1e999"}`, Want: source.NotANumber},
			"too large a number": {Body: `{"v":1e999}`, Want: source.Malformed},
			"a list for a field": {Body: `[1]`, Want: source.NoData},
			"no JSON":            {Body: `confidential`, Want: source.Malformed},
			"nothing":            {Body: ``, Want: source.Malformed},
			"half of the JSON":   {Body: `{"v":1`, Want: source.Malformed},
			"something after it": {Body: `{"v":1} confidential`, Want: source.Malformed},
		},
	}.Test(t)
}

func TestArgumentsAndCredentialsAreSent(t *testing.T) {
	var got *http.Request
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		fmt.Fprint(w, `{"v":1}`)
	})
	q := Query{
		URL: address + "/api/{{args.service}}?of={{args.service}}", JSONPath: "{.v}", Args: map[string]string{"service": "a/b c"},
		Headers: []Header{{Name: "authorization", Value: "Bearer {{secret}}", Secret: source.SecretKey{Name: "api", Key: "token"}}, {Name: "X-Org", Value: "7"}},
	}
	if _, err := measure(t, sourcetest.Secrets{"api/token": "t0ken"}, q); err != nil {
		t.Fatal(err)
	}
	if got.URL.EscapedPath() != "/api/a%2Fb%20c" || got.URL.Query().Get("of") != "a/b c" || got.Header.Get("Authorization") != "Bearer t0ken" || got.Header.Get("X-Org") != "7" {
		t.Errorf("got %s %v", got.URL, got.Header)
	}
	got = nil
	for name, s := range map[string]sourcetest.Secrets{"no Secret": {}, "a line end in the Secret": {"api/token": "t0ken\r\nHost: confidential"}} {
		_, err := measure(t, s, q)
		var missing *source.MissingError
		if !errors.As(err, &missing) || missing.Reason != source.Credentials || strings.Contains(missing.Message, "confidential") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got != nil {
		t.Error("asked without the credentials")
	}
}

func TestQueriesThatAreNeverSentNameTheField(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Query)
		want   string
	}{
		"no URL":                    {func(q *Query) { q.URL = "" }, "url: "},
		"another protocol":          {func(q *Query) { q.URL = "file:///etc/passwd" }, "url: "},
		"an argument as the host":   {func(q *Query) { q.URL = "http://{{args.x}}/" }, "url: an argument can only be in the path or the query"},
		"no path":                   {func(q *Query) { q.JSONPath = "" }, "jsonPath: "},
		"a path that is none":       {func(q *Query) { q.JSONPath = "{.a[" }, "jsonPath: is not a JSONPath"},
		"two paths":                 {func(q *Query) { q.JSONPath = "{.a}{.b}" }, "jsonPath: must be one path"},
		"text around it":            {func(q *Query) { q.JSONPath = "{.a} ms" }, "jsonPath: must be one path"},
		"everything below":          {func(q *Query) { q.JSONPath = "{..a}" }, "jsonPath: can't contain .."},
		"several indices":           {func(q *Query) { q.JSONPath = "{.a[0,0][0,0]}" }, "jsonPath: can't contain several indices"},
		"several keys":              {func(q *Query) { q.JSONPath = "{['a','a']}" }, "jsonPath: can't contain several indices"},
		"everything in a filter":    {func(q *Query) { q.JSONPath = "{.a[?(@..b==1)]}" }, "jsonPath: can't contain .."},
		"a loop":                    {func(q *Query) { q.JSONPath = "{range .a[*]}{.b}{end}" }, "jsonPath: must be one path"},
		"the beginning of a loop":   {func(q *Query) { q.JSONPath = "{range .a}" }, "jsonPath: "},
		"no name of a header":       {func(q *Query) { q.Headers = []Header{{Name: "a b"}} }, "headers[0].name: "},
		"the host":                  {func(q *Query) { q.Headers = []Header{{Name: "host", Value: "x"}} }, "headers[0].name: Host is set by Serin"},
		"a line end in a header":    {func(q *Query) { q.Headers = []Header{{Name: "a", Value: "b\r\nc: d"}} }, "headers[0].value: "},
		"a header that frames":      {func(q *Query) { q.Headers = []Header{{Name: "transfer-encoding", Value: "chunked"}} }, "headers[0].name: "},
		"an argument without value": {func(q *Query) { q.URL = "http://a.example/{{args.x}}" }, "url: there is no argument x"},
		"a password in the address": {func(q *Query) { q.URL = "http://a:b@c.example/" }, "url: "},
	} {
		t.Run(name, func(t *testing.T) {
			q := Query{URL: "http://a.example/", JSONPath: "{.v}"}
			test.change(&q)
			if _, err := New(sourcetest.Caller(time.Second), nil, q); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzNoPathAndNoDocumentPanics(f *testing.F) {
	for _, seed := range [][2]string{
		{`{.a}`, `{"a":1}`},
		{`{.a[?(@.b>1)].c}`, `{"a":[{"b":2,"c":"3"}]}`},
		{`{[0:2:1]}`, `[1,2]`},
		{`{.a[-1]}`, `{"a":null}`},
		{`{@}`, `1`},
		{`{.*}`, `{"a":1}`},
		{`{[?(@.x==true)]}`, `[{"x":true}]`},
		{`{"text"}`, `1`},
		{`{1}`, `1`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, expression, document string) {
		p, err := newPath(expression)
		if err != nil {
			return
		}
		value, err := p.number([]byte(document))
		var missing *source.MissingError
		if err != nil && !errors.As(err, &missing) {
			t.Errorf("%v", err)
		}
		if err == nil && !json.Valid([]byte(document)) {
			t.Errorf("%v from no JSON", value)
		}
	})
}
