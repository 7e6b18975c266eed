// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the import path of the repository.
const module = "github.com/serin-dev/serin"

// layer says what the code of a folder, without its tests, may import beside
// packages of its own folder. "." begins a folder of this repository.
type layer struct {
	// folder and everything below it, unless another layer names a folder below.
	folder string
	// imports are the prefixes allowed beyond the standard library.
	imports []string
	// pure folders do no I/O: the packages of the standard library that would
	// let them are refused.
	pure bool
}

// layers are the rules of docs/architecture.md. Sibling kinds and sibling
// routers meet through API objects and never import each other.
var layers = []layer{
	{folder: "api", imports: []string{"./api", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/scheme", "sigs.k8s.io/json", "sigs.k8s.io/yaml"}},
	{folder: "analysis"},
	{folder: "analysis/judge", imports: []string{"./analysis", "./analysis/refusals", "./analysis/shares"}, pure: true},
	{folder: "analysis/refusals", imports: []string{"./analysis"}, pure: true},
	{folder: "analysis/shares", pure: true},
	{folder: "analysis/policy", imports: []string{"./analysis/judge"}, pure: true},
	{folder: "analysis/settings", imports: []string{"./analysis/judge", "./api/v1alpha1"}, pure: true},
	{folder: "analysis/recording", imports: []string{"./analysis", "./analysis/judge", "./analysis/policy", "sigs.k8s.io/json"}, pure: true},
	{folder: "analysis/replay", imports: []string{"./analysis", "./analysis/policy", "./analysis/judge", "./analysis/recording", "./analysis/settings", "./api/v1alpha1", "k8s.io/apimachinery", "sigs.k8s.io/yaml"}},
	{folder: "analysis/source", imports: []string{"./analysis", "./analysis/egress", "./proxy/exposition", "./config/testenv", "github.com/prometheus", "k8s.io/client-go/util/jsonpath", "golang.org/x/net/http/httpguts", "github.com/aws"}},
	{folder: "analysis/egress"},
	{folder: "controllers/secretkey", imports: []string{"./api", "./analysis/egress", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/rollout", imports: append(controller("rollout"), "./controllers/release", "./schedule", "./controllers/configrevision", "./analysis/judge", "./analysis/recording", "./analysis/settings", "./controllers/notify", "./controllers/sampling/evidence", "./controllers/sampling/metrics", "./controllers/sampling/resolve", "./controllers/sampling/templates", "github.com/go-openapi/jsonpointer")},
	{folder: "controllers/rollout/telemetry", imports: []string{"./api", "./analysis/judge", "github.com/prometheus/client_golang", "k8s.io/apimachinery"}},
	{folder: "controllers/kit", imports: []string{"k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/kit/shell", imports: []string{"./api", "./controllers/kit", "./controllers/workload", "./traffic", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/release", imports: []string{"./api", "./controllers/kit", "./controllers/kit/debounce", "./controllers/release/delegated", "./controllers/release/deployment", "./controllers/release/evidence", "./controllers/release/gates", "./controllers/release/record", "./controllers/release/routing", "./controllers/release/servicepair", "./controllers/release/state", "./controllers/release/strategy", "./analysis", "./analysis/policy", "./analysis/judge", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/release/strategy", imports: []string{"./api", "./analysis/judge", "./analysis/policy", "./analysis/settings", "./schedule", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/release/state", imports: []string{"./api", "./controllers/kit", "./controllers/release/strategy", "./controllers/release/versions", "./analysis", "./analysis/judge", "./analysis/recording", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/release/tape", imports: []string{"./api", "./controllers/release/state", "./analysis/recording", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/release/evidence", imports: []string{"./api", "./controllers/kit", "./controllers/release/state", "./analysis", "./analysis/judge", "./analysis/policy", "./analysis/recording", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/release/record", imports: []string{"./api", "./controllers/kit", "./controllers/release/evidence", "./controllers/release/state", "./analysis/judge", "k8s.io/apimachinery", "k8s.io/utils/ptr"}, pure: true},
	{folder: "controllers/release/gates", imports: []string{"./api", "./controllers/kit", "./controllers/release/evidence", "./controllers/release/record", "./controllers/release/state", "./controllers/release/strategy", "./analysis/judge", "./analysis/settings"}, pure: true},
	{folder: "controllers/release/routing", imports: []string{"./api", "./controllers/kit", "./controllers/release/gates", "./controllers/release/record", "./controllers/release/state", "./controllers/release/strategy", "./controllers/release/versions"}, pure: true},
	{folder: "controllers/release/deployment", imports: []string{"./api", "./controllers/kit", "./controllers/release/record", "./controllers/release/routing", "./controllers/release/state", "./controllers/release/strategy", "./controllers/release/versions"}, pure: true},
	{folder: "controllers/release/servicepair", imports: []string{"./api", "./controllers/kit", "./controllers/release/record", "./controllers/release/routing", "./controllers/release/state", "./controllers/release/strategy"}, pure: true},
	{folder: "controllers/release/delegated", imports: []string{"./api", "./controllers/kit", "./controllers/release/record", "./controllers/release/routing", "./controllers/release/state", "./controllers/release/strategy"}, pure: true},
	{folder: "controllers/admission", imports: []string{"./api", "./certificate", "./controllers/configrevision", "./traffic", "github.com/go-openapi/jsonpointer", "gomodules.xyz/jsonpatch/v2", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/freeze", imports: []string{"./api", "./controllers/kit/bounds", "./controllers/kit/tracing", "./schedule", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/kit/tracing", imports: []string{"go.opentelemetry.io/otel", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/kit/bounds", imports: []string{"./poll/fair", "github.com/prometheus/client_golang", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/kit/debounce"},
	{folder: "poll/fair"},
	{folder: "controllers/kit/changes", imports: []string{"k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/event"}},
	{folder: "poll", imports: []string{"./poll/fair", "k8s.io/client-go/util/workqueue", "k8s.io/utils/clock"}},
	{folder: "skew", pure: true},
	{folder: "skew/kinds", imports: []string{"k8s.io/client-go/openapi"}},
	{folder: "schedule", imports: []string{"./api", "k8s.io/apimachinery", "github.com/robfig/cron/v3"}, pure: true},
	{folder: "controllers/canaryrelease", imports: append(controller("canaryrelease"), "./traffic/resolve", "./controllers/canaryrelease/releases", "./controllers/release/helmrelease")},
	{folder: "controllers/release/helmrelease", imports: []string{"./api", "./controllers/kit", "./controllers/kit/debounce", "./controllers/release/versions", "k8s.io/apimachinery", "k8s.io/utils/ptr"}, pure: true},
	{folder: "controllers/release/versions", imports: []string{"./api", "./controllers/kit"}, pure: true},
	{folder: "controllers/configrevision", imports: []string{"./api", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/canaryrelease/chart", imports: []string{"./controllers/canaryrelease/chart/compare", "./controllers/canaryrelease/releases", "github.com/santhosh-tekuri/jsonschema/v6", "helm.sh/helm/v4", "k8s.io", "sigs.k8s.io/yaml"}},
	{folder: "controllers/canaryrelease/child", imports: []string{"./controllers/canaryrelease/releases", "./poll/fair", "golang.org/x/sys", "k8s.io/apimachinery/pkg/types", "k8s.io/client-go"}},
	{folder: "controllers/canaryrelease/releases", imports: []string{"k8s.io"}},
	{folder: "controllers/canaryrelease/chart/compare", imports: []string{"./controllers/workload", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/yaml"}, pure: true},
	{folder: "controllers/trafficsplit", imports: append(controller("trafficsplit"), "./traffic/resolve")},
	{folder: "controllers/trafficsplit/endpoints", imports: []string{"./controllers/kit/bounds", "./controllers/kit/tracing", "./traffic", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/trafficsplit/plan", imports: []string{"./traffic/resolve", "./api", "./controllers/kit", "./traffic", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/trafficsplit/reporting", imports: []string{"./api", "./controllers/kit", "./controllers/trafficsplit/plan", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/trafficsplit/reports", imports: []string{"./poll", "./proxy/confirmation", "./skew", "./traffic", "k8s.io/apimachinery", "k8s.io/client-go/util/workqueue", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime/pkg/event"}},
	{folder: "controllers/trafficsplit/served", imports: []string{"./api", "./traffic", "k8s.io", "sigs.k8s.io"}},
	{folder: "traffic", imports: []string{"./api", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/json"}},
	{folder: "traffic/expression", pure: true},
	{folder: "traffic/resolve", imports: []string{"./api", "./traffic", "./traffic/expression", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "traffic/routes", imports: []string{"./api", "./traffic", "k8s.io", "sigs.k8s.io"}},
	{folder: "traffic/istio", imports: []string{"./traffic/expression", "./api", "./traffic", "./traffic/routes", "k8s.io", "sigs.k8s.io"}},
	{folder: "traffic/nginx", imports: []string{"./api", "./traffic", "./traffic/nginx/conf", "./traffic/mesh", "./traffic/networkpolicy", "k8s.io", "sigs.k8s.io"}},
	{folder: "traffic/nginx/conf", imports: []string{"./traffic/expression", "./analysis", "./proxy/accesslog", "./traffic", "k8s.io/api"}},
	{folder: "traffic/networkpolicy", imports: []string{"./traffic", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils/net"}, pure: true},
	{folder: "traffic/mesh", imports: []string{"k8s.io/api"}, pure: true},
	{folder: "traffic/gatewayapi", imports: []string{"./traffic/expression", "./api", "./traffic", "./traffic/routes", "k8s.io", "sigs.k8s.io"}},
	{folder: "traffic/smi", imports: []string{"./api", "./traffic", "k8s.io"}},
	{folder: "traffic/selector", imports: []string{"./api", "./traffic", "k8s.io"}},
	{folder: "controllers/workload", imports: []string{"./api", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/sampling/evidence", imports: []string{"./api", "./analysis", "./analysis/judge", "./analysis/source", "./controllers/sampling/metrics", "./controllers/sampling/resolve"}, pure: true},
	{folder: "controllers/sampling", imports: []string{"./api", "./analysis", "./controllers/kit/changes", "./poll", "./traffic", "golang.org/x/sync", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/sampling/resolve", imports: []string{"./api", "k8s.io/apimachinery"}, pure: true},
	{folder: "controllers/sampling/templates", imports: []string{"./api", "./controllers/sampling/resolve", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/sampling/providers", imports: []string{"./api", "./analysis", "./analysis/source", "./controllers/sampling/resolve", "./controllers/sampling/job", "./controllers/secretkey", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/sampling/job", imports: []string{"./api", "./analysis/source", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/sampling/metrics", imports: []string{"./api", "./analysis", "./analysis/source", "./controllers/kit/changes", "./controllers/sampling/resolve", "./poll", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/notify", imports: []string{"./api", "./controllers/kit/tracing", "./controllers/secretkey", "./analysis/egress", "./poll", "github.com/prometheus/client_golang", "k8s.io", "sigs.k8s.io"}},
	{folder: "controllers/notify/payload", imports: []string{"./api", "github.com/cloudevents/sdk-go/v2/event", "k8s.io/apimachinery"}, pure: true},
	{folder: "proxy/agent", imports: []string{"./proxy", "./traffic", "./traffic/nginx/conf", "github.com/go-logr/logr", "github.com/prometheus/client_golang", "k8s.io"}},
	{folder: "proxy/confirmation", imports: []string{"k8s.io/apimachinery"}},
	{folder: "proxy/counts", imports: []string{"./analysis", "./proxy/accesslog", "./proxy/exposition", "./proxy/replace", "github.com/prometheus/client_golang", "k8s.io"}},
	{folder: "proxy/exposition", imports: []string{"./analysis", "github.com/prometheus"}},
	{folder: "proxy/proxytest", imports: []string{"./analysis", "./config/testenv", "./proxy/exposition", "github.com/google/go-cmp/cmp", "github.com/prometheus"}},
	{folder: "proxy/replace"},
	{folder: "proxy/sockets", imports: []string{"./proxy/fdstore", "./traffic/nginx/conf", "golang.org/x/sys"}},
	{folder: "proxy/udp", imports: []string{"./proxy/exposition", "./proxy/sockets", "./traffic", "./traffic/nginx/conf", "github.com/go-logr/logr", "github.com/prometheus/client_golang", "golang.org/x/sys", "k8s.io/utils/clock"}},
	{folder: "proxy/weights", imports: []string{"./proxy/replace", "./traffic/nginx/conf"}},
	{folder: "metricsapi/observe", imports: []string{"./api", "k8s.io/apimachinery"}},
	{folder: "metricsapi/server", imports: []string{"./api/metrics", "./metricsapi/server/openapi", "./metricsapi/observe", "github.com/emicklei/go-restful/v3", "k8s.io"}},
	{folder: "certificate", imports: []string{"github.com/prometheus/client_golang", "github.com/go-logr/logr", "k8s.io"}},
	{folder: "metricsapi/server/openapi", imports: []string{"./api/metrics", "k8s.io"}},
	{folder: "metricsapi/inventory", imports: []string{"./api", "./metricsapi/observe", "github.com/go-logr/logr", "k8s.io"}},
	{folder: "metricsapi/aggregate", imports: []string{"./api", "./traffic", "./metricsapi/observe", "golang.org/x/sync", "golang.org/x/time", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog", "k8s.io/utils/clock"}},
	{folder: "metricsapi/source", imports: []string{"./api", "./metricsapi/observe", "./analysis", "./analysis/egress", "./analysis/source/scrape", "./poll", "./proxy/exposition", "./traffic", "golang.org/x/sync", "github.com/prometheus", "k8s.io", "sigs.k8s.io/yaml"}},
	{folder: "proxy/accesslog", imports: []string{"golang.org/x/sys", "k8s.io/utils/clock"}},
	{folder: "proxy/fdstore", imports: []string{"github.com/go-logr/logr", "golang.org/x/sys", "k8s.io/utils/clock"}},
	{folder: "proxy/feed", imports: []string{"./traffic/resolve", "./api", "./traffic", "github.com/go-logr/logr", "k8s.io", "sigs.k8s.io"}},
	{folder: "proxy/nginxproc", imports: []string{"./proxy/fdstore", "./proxy/replace", "./traffic/nginx/conf", "golang.org/x/sys", "k8s.io/utils/clock"}},
	{folder: "config/testenv"},
	{folder: "config/golden", imports: []string{"github.com/google/go-cmp"}},
	{folder: "charts"},
	{folder: "config/apidocs", imports: []string{"k8s.io/apiextensions-apiserver", "sigs.k8s.io/yaml"}},
	{folder: "config", imports: []string{"go.yaml.in/yaml/v3"}},
	{folder: "cmd", imports: []string{""}},
	{folder: "cmd/build", pure: true},
	{folder: "cmd/kubectl-traffic", imports: []string{"./cmd/build", "./cmd/kubectl-traffic", "./api", "./analysis/recording", "./analysis/replay", "./metricsapi/observe", "./schedule", "./skew", "github.com/cli/browser", "github.com/spf13/cobra", "golang.org/x/sync", "golang.org/x/term", "k8s.io", "sigs.k8s.io"}},
	{folder: "cmd/kubectl-traffic/commands/split", imports: []string{"./cmd/kubectl-traffic", "./api", "./traffic", "github.com/spf13/cobra", "k8s.io", "sigs.k8s.io"}},
	{folder: "cmd/kubectl-traffic/canaryrights", imports: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/client"}, pure: true},
	{folder: "cmd/kubectl-traffic/trafficblock", imports: []string{"k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/tags", imports: []string{"./api", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/trafficstats", imports: []string{"./api", "./metricsapi/observe", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/boxgraph", pure: true},
	{folder: "cmd/kubectl-traffic/migration", imports: []string{"./cmd/kubectl-traffic/migration"}, pure: true},
	{folder: "cmd/kubectl-traffic/migration/source", imports: []string{"sigs.k8s.io/json"}, pure: true},
	{folder: "cmd/kubectl-traffic/migration/target", imports: []string{"./traffic/expression", "./api", "./cmd/kubectl-traffic/migration/source", "./traffic", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/yaml"}, pure: true},
	{folder: "cmd/kubectl-traffic/migration/argo", imports: []string{"./api", "./cmd/kubectl-traffic/migration/source", "./cmd/kubectl-traffic/migration/target", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/migration/flagger", imports: []string{"./api", "./cmd/kubectl-traffic/migration/source", "./cmd/kubectl-traffic/migration/target", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/rolloutinit", imports: []string{"./cmd/kubectl-traffic/rolloutview", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/dashboard/login", imports: []string{"./cmd/kubectl-traffic/dashboard", "github.com/coreos/go-oidc/v3/oidc", "github.com/go-logr/logr", "golang.org/x/oauth2", "golang.org/x/sync", "k8s.io", "sigs.k8s.io"}},
	{folder: "cmd/kubectl-traffic/dashboard/session"},
	{folder: "cmd/kubectl-traffic/dashboard/page"},
	{folder: "cmd/kubectl-traffic/dashboard/view", imports: []string{"./api", "./analysis", "./analysis/policy", "./analysis/recording", "./analysis/replay", "./analysis/shares", "./cmd/kubectl-traffic/rolloutview", "./cmd/kubectl-traffic/trafficstats", "./schedule", "k8s.io/api", "k8s.io/apimachinery"}, pure: true},
	{folder: "cmd/kubectl-traffic/rolloutview", imports: []string{"./api", "./analysis", "./analysis/judge", "./analysis/settings", "./schedule", "github.com/xlab/treeprint", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/cli-runtime/pkg/printers", "k8s.io/utils/ptr"}, pure: true},
}

// controller is what the shell of a kind may import.
func controller(kind string) []string {
	return []string{
		"./controllers/" + kind, "./controllers/kit", "./traffic", "./controllers/workload", "./analysis", "./api",
		"github.com/go-logr/logr", "k8s.io", "sigs.k8s.io",
	}
}

// impure are the packages of the standard library that reach outside of the program.
var impure = []string{"context", "crypto/rand", "log", "math/rand", "net", "os", "sync", "syscall", "testing"}

// onlyItself are folders whose permission does not reach below them: what may
// import the neutral form of traffic may not import a router.
var onlyItself = []string{module + "/traffic", module + "/analysis"}

func TestImports(t *testing.T) {
	for _, file := range sources(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || path.Dir(file) == "." {
			continue
		}
		rule, found := layerOf(path.Dir(file))
		if !found {
			t.Errorf("%s is in no layer: add its folder to the rules of this test and to docs/architecture.md", file)
			continue
		}
		for _, imported := range importsOf(t, file) {
			if err := rule.check(imported); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// withoutMutants are pure folders whose conditions have no list in e2e/mutate/lists, and why. The others decide
// what happens to traffic, versions or rights.
var withoutMutants = map[string]string{
	"cmd/build":                             "it tells the version that the build gave it",
	"cmd/kubectl-traffic/boxgraph":          "TestText compares whole drawings",
	"cmd/kubectl-traffic/dashboard/view":    "it shows what was decided",
	"cmd/kubectl-traffic/migration":         "TestGolden compares whole files, which a user reads before they are applied",
	"cmd/kubectl-traffic/migration/argo":    "as for all of migration",
	"cmd/kubectl-traffic/migration/flagger": "as for all of migration",
	"cmd/kubectl-traffic/migration/source":  "as for all of migration",
	"cmd/kubectl-traffic/migration/target":  "as for all of migration",
	"cmd/kubectl-traffic/rolloutinit":       "TestWrite compares whole files, which a user reads before they are applied",
	"cmd/kubectl-traffic/rolloutview":       "it shows what was decided",
	"cmd/kubectl-traffic/trafficstats":      "it shows what was measured",
	"controllers/notify/payload":            "TestNotificationsLookLikeThis compares whole bodies",
}

func TestPureFoldersHaveMutants(t *testing.T) {
	listed := map[string]bool{}
	lists, err := filepath.Glob("e2e/mutate/lists/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if folder, found := strings.CutPrefix(line, "package: "); found {
				listed[strings.TrimSpace(folder)] = true
			}
		}
	}
	pure := map[string]bool{}
	for _, file := range sources(t, ".go") {
		if rule, found := layerOf(path.Dir(file)); found && rule.pure && !strings.HasSuffix(file, "_test.go") {
			pure[path.Dir(file)] = true
		}
	}
	for folder := range pure {
		if _, excepted := withoutMutants[folder]; listed[folder] == excepted {
			t.Errorf("%s is pure: it needs a list of mutants in e2e/mutate/lists, or a reason in withoutMutants, and not both", folder)
		}
	}
	for folder := range withoutMutants {
		if !pure[folder] {
			t.Errorf("%s is not pure, or not there: it needs no reason for having no mutants", folder)
		}
	}
}

func TestLayersCatchWhatTheyForbid(t *testing.T) {
	tests := []struct {
		name, folder, imported string
		allowed                bool
	}{
		{name: "a planner may import the API", folder: "controllers/release", imported: module + "/api/v1alpha1", allowed: true},
		{name: "a planner may not import a client", folder: "controllers/release", imported: "sigs.k8s.io/controller-runtime/pkg/client"},
		{name: "a planner may not import a context", folder: "controllers/release", imported: "context"},
		{name: "a planner may not reach the network", folder: "controllers/trafficsplit/plan", imported: "net/http"},
		{name: "a kind may not import its sibling", folder: "controllers/rollout", imported: module + "/controllers/trafficsplit"},
		{name: "a kind may not import a router", folder: "controllers/rollout", imported: module + "/traffic/nginx"},
		{name: "a kind may not import a source", folder: "controllers/rollout", imported: module + "/analysis/source/scrape"},
		{name: "the neutral form of traffic may not import a router", folder: "traffic", imported: module + "/traffic/nginx"},
		{name: "a shell may import its planner", folder: "controllers/rollout", imported: module + "/controllers/release", allowed: true},
		{name: "the statistics may not import Kubernetes", folder: "analysis/judge", imported: "k8s.io/apimachinery/pkg/types"},
		{name: "a source may import its wire format", folder: "analysis/source/scrape", imported: "github.com/prometheus/common/expfmt", allowed: true},
		{name: "a controller may not import Helm", folder: "controllers/canaryrelease", imported: "helm.sh/helm/v4/pkg/action"},
		{name: "a command wires everything", folder: "cmd/serin", imported: module + "/traffic/nginx", allowed: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule, found := layerOf(test.folder)
			if !found {
				t.Fatal("no layer")
			}
			if err := rule.check(test.imported); (err == nil) != test.allowed {
				t.Errorf("got %v", err)
			}
		})
	}
}

// layerOf returns the rule of the longest folder that holds the given one.
func layerOf(folder string) (rule layer, found bool) {
	for _, l := range layers {
		if under(folder, l.folder) && len(l.folder) > len(rule.folder) {
			rule, found = l, true
		}
	}
	return rule, found
}

func (l layer) check(imported string) error {
	if isStandard(imported) {
		if l.pure && slices.ContainsFunc(impure, func(p string) bool { return under(imported, p) }) {
			return fmt.Errorf("%s is pure and may not import %s: hand over what it needs as a value", l.folder, imported)
		}
		return nil
	}
	if own, found := layerOf(strings.TrimPrefix(imported, module+"/")); found && own.folder == l.folder {
		return nil
	}
	for _, allowed := range l.imports {
		allowed = strings.Replace(allowed, "./", module+"/", 1)
		if imported == allowed || allowed == "" || under(imported, allowed) && !slices.Contains(onlyItself, allowed) {
			return nil
		}
	}
	return fmt.Errorf("%s may not import %s", l.folder, imported)
}

// under tells whether a slash-separated name is the prefix or below it.
func under(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}

// isStandard tells a package of the standard library by its first element, which
// is no host name.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, spec := range parsed.Imports {
		list = append(list, strings.Trim(spec.Path.Value, `"`))
	}
	return list
}

// sources lists the files of this module with one of the endings, without those
// of nested modules and hidden folders.
func sources(t *testing.T, endings ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(file, entry)
		}
		if slices.Contains(endings, filepath.Ext(file)) {
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("found no %v file: the test looks in the wrong folder", endings)
	}
	return files
}

// enter decides whether a folder belongs to this module.
func enter(folder string, entry fs.DirEntry) error {
	if folder == "." {
		return nil
	}
	if strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}
