// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// rangesInRanges takes time and hardly any memory: with a list for each turn it could meet the limit of memory first.
const rangesInRanges = `{{ $list := until 10000 }}{{ range $list }}{{ range $list }}{{ range $list }}{{ end }}{{ end }}{{ end }}`

// What a tenant can write into a chart to harm the manager. Each of them did while charts were
// rendered in the manager's process.
var harmful = map[string]struct {
	template, config string
	limits           func(*Limits)
	want             string
}{
	"text that doubles": {
		template: `{{ $x := "aaaaaaaaaaaaaaaa" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`,
		want:     "Helm needs more memory than its limit of 160 MiB: make the chart or its values smaller",
	},
	"one large list": {
		template: `{{ range until 1000000000 }}{{ end }}`,
		want:     "Helm needs more memory than its limit of 160 MiB: make the chart or its values smaller",
	},
	"ranges in ranges": {
		template: rangesInRanges,
		limits:   func(l *Limits) { l.CPU = time.Second },
		want:     "Helm uses more CPU time than its limit of 1s: make the chart or its values simpler",
	},
	"ranges in ranges, on a machine that has no time for it": {
		template: rangesInRanges,
		limits:   func(l *Limits) { l.Time = time.Second },
		want:     "Helm takes longer than its time limit of 1s: make the chart or its values simpler",
	},
	"an answer of megabytes": {
		template: "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}, data: {a: '{{ if eq .Values.tag \"2\" }}{{ repeat 3000000 \"a\" }}{{ end }}'}}",
		want:     "the objects that the canary needs from the chart have more than 2 MiB: make the ConfigMaps and Secrets that its pods read smaller",
	},
}

func TestAChartCanNotHarmTheManager(t *testing.T) {
	for name, test := range harmful {
		t.Run(name, func(t *testing.T) {
			limits := ample()
			if test.limits != nil {
				test.limits(&limits)
			}
			r := New(newAPI(t, test.template).config(), Options{Program: helmProgram(t), Account: account, Render: limits})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := r.Propose(t.Context(), ask("shop"))
			runtime.ReadMemStats(&after)
			if limit := releases.LimitError(""); !errors.As(err, &limit) || err.Error() != test.want {
				t.Errorf("got %v", err)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 32 {
				t.Errorf("the caller took %d MiB", used)
			}
			if children := childrenOf(t); children != "" {
				t.Errorf("processes are left: %s", children)
			}
		})
	}
}

// childrenOf this process.
func childrenOf(t *testing.T) string {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, task := range tasks {
		if found, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children"); err == nil {
			all = append(all, strings.Fields(string(found))...)
		}
	}
	return strings.Join(all, " ")
}

func TestAnHonestChartIsRendered(t *testing.T) {
	api := newAPI(t, "")
	r := New(api.config(), Options{Program: helmProgram(t), Account: account, Render: ample()})
	p, err := r.Propose(t.Context(), ask("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Refused) > 0 || p.Digest == "" || len(p.Copies) != 1 || len(p.Canaries) != 1 {
		t.Fatalf("%+v", p)
	}
	if c := p.Canaries[0]; c.Name != "web" || !c.Rolls || c.Template.Spec.Containers[0].Image != "web:2" || c.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name != p.Copies[0].GetName() {
		t.Errorf("%+v", c)
	}
	for user := range api.users {
		if user != "system:serviceaccount:shop:"+account+" by Bearer managers" {
			t.Errorf("a request was made as %s", user)
		}
	}
}

// What reaches the program is the call and nothing else.
func TestTheProgramGetsNoneOfTheEnvironment(t *testing.T) {
	t.Setenv("SERIN_TEST_SECRET", "hunter2")
	said, err := program{path: script(t, "env; pwd; ls /proc/$$/fd"), limits: ample()}.run(t.Context(), nil, http.NotFoundHandler())
	if err != nil || strings.Contains(string(said), "SERIN_TEST_SECRET") || !strings.Contains(string(said), "GOMEMLIMIT=125829120") || !strings.Contains(string(said), "\n/\n") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestWhatAProgramSaysIsReadWithinBounds(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"an answer without end":     {"exec yes", "the objects that the canary needs from the chart have more than 2 MiB"},
		"complaints without end":    {"exec yes hunter2 >&2", "Helm takes longer than its time limit of 1s"},
		"nothing":                   {"exec sleep 1000", "Helm takes longer than its time limit of 1s"},
		"processes that stay":       {"sleep 1000 & sleep 1000 & wait", "Helm takes longer than its time limit of 1s"},
		"no memory":                 {"echo 'fatal error: runtime: out of memory' >&2; yes | head -c 100000 >&2; exit 2", "Helm needs more memory than its limit of 160 MiB"},
		"a value, before it fails":  {"echo hunter2 >&2; exit 1", "the process that runs Helm failed"},
		"killed by another process": {"kill -9 $$", "the process that runs Helm was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := ample()
			if strings.HasSuffix(test.want, "limit of 1s") {
				limits.Time = time.Second
			}
			_, err := program{path: script(t, test.body), limits: limits}.run(t.Context(), []byte("{}"), http.NotFoundHandler())
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
			if children := childrenOf(t); children != "" {
				t.Errorf("processes are left: %s", children)
			}
		})
	}
	if _, err := (program{path: "/none", limits: ample()}).run(t.Context(), nil, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "can't be started") {
		t.Error(err)
	}
}

// The record of this release has nearly as many bytes as are read of one: the limit of memory is
// for such releases too.
func TestALargeHonestChartIsRendered(t *testing.T) {
	file := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	r := New(newAPI(t, "", file).config(), Options{Program: helmProgram(t), Account: account, Render: ample()})
	if p, err := r.Propose(t.Context(), ask("shop")); err != nil || len(p.Canaries) != 1 {
		t.Errorf("%+v %v", p, err)
	}
	r = New(newAPI(t, "", file, file).config(), Options{Program: helmProgram(t), Account: account, Render: ample()})
	if _, err := r.Propose(t.Context(), ask("shop")); err == nil || !strings.Contains(err.Error(), "it is larger than 8 MiB") {
		t.Errorf("a record that is too large: %v", err)
	}
}

func TestWhileOneNamespaceComputesForEverOthersGoOn(t *testing.T) {
	endless := script(t, "cat >/dev/null; exec sleep 1000")
	api := newAPI(t, "")
	r := New(api.config(), Options{Program: endless, Account: account})
	ctx, cancel := context.WithCancel(t.Context())
	propose := func(ctx context.Context, r *Releases, namespace string) error {
		q := ask(namespace)
		q.Turn = func() {}
		_, err := r.Propose(ctx, q)
		return err
	}
	done := make(chan error)
	go func() { done <- propose(ctx, r, "hostile") }()
	for r.renders.Loads()["hostile"].Held == 0 {
		runtime.Gosched()
	}
	if err := propose(t.Context(), r, "hostile"); !errors.As(err, new(releases.BusyError)) {
		t.Errorf("a second call of the same namespace: %v", err)
	}
	other := *r
	other.options.Program = helmProgram(t)
	if err := propose(t.Context(), &other, "shop"); err != nil {
		t.Errorf("another namespace waits: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("a hostile call ended: %v", err)
	default:
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a hostile call was answered")
	}
}
