// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// figure is a number that a page quotes, and where it is set. Both texts are in their files as they stand but for
// line breaks, with the number in « ».
type figure struct{ page, says, file, has string }

// TestFiguresOfThePagesAreThoseOfTheCode fails when a number of the table is changed in the page or in the code alone.
func TestFiguresOfThePagesAreThoseOfTheCode(t *testing.T) {
	texts := map[string]string{}
	for _, f := range figures {
		var numbers [2]float64
		for i, side := range [2]struct{ file, text string }{{f.page, f.says}, {f.file, f.has}} {
			if texts[side.file] == "" {
				texts[side.file] = read(t, side.file)
			}
			if !strings.Contains(texts[side.file], oneLine(unmarked.Replace(side.text))) {
				t.Errorf("%s does not say %q any more; say the same in %s, and in this test", side.file, side.text, f.page)
			}
			var err error
			if numbers[i], err = quantity(marked.FindString(side.text)); err != nil {
				t.Errorf("%s: %q: %v", side.file, side.text, err)
			}
		}
		if numbers[0] != numbers[1] {
			t.Errorf("%s says %q, and %s has %q: %v is not %v", f.page, f.says, f.file, f.has, numbers[0], numbers[1])
		}
	}
}

var (
	marked   = regexp.MustCompile(`«[^»]*»`)
	unmarked = strings.NewReplacer("«", "", "»", "")
)

// read is a file in one line.
func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return oneLine(string(content))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

var (
	spelt = map[string]float64{
		"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
		"ten": 10, "twelve": 12, "fifteen": 15, "sixteen": 16, "twenty": 20, "thirty": 30, "half a": 0.5, "a quarter of an": 0.25, "a tenth of a": 0.1, "half an": 0.5, "two and a half": 2.5,
	}
	units = map[string]float64{
		"": 1, "%": 0.01, "pp": 0.01, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "second": 1, "minute": 60, "hour": 3600, "day": 86400,
		"byte": 1, "kB": 1000, "k": 1 << 10, "KiB": 1 << 10, "Mi": 1 << 20, "MiB": 1 << 20, "Gi": 1 << 30, "GiB": 1 << 30,
	}
	measure = regexp.MustCompile(`^(.*?) ?([a-zA-Z%]*)$`)
)

// quantity is a number with its unit, in seconds or bytes, as a sentence or Go has it.
func quantity(text string) (float64, error) {
	text = unmarked.Replace(text)
	if m := measure.FindStringSubmatch(text); m != nil {
		unit, known := units[m[2]]
		if !known {
			unit, known = units[strings.TrimSuffix(m[2], "s")]
		}
		number, is := spelt[m[1]]
		if !is {
			var err error
			number, err = strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(m[1]), 64)
			is = err == nil
		}
		if known && is {
			return number * unit, nil
		}
	}
	if number, is := spelt[text]; is {
		return number, nil
	}
	seconds := strings.NewReplacer("WindowLength", "5", "time.Millisecond", "0.001", "time.Second", "1", "time.Minute", "60", "time.Hour", "3600").Replace(text)
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, seconds)
	if err != nil || value.Value == nil {
		return 0, fmt.Errorf("%q is no quantity: %w", text, err)
	}
	number, _ := constant.Float64Val(constant.ToFloat(value.Value))
	return number, nil
}

func TestQuantity(t *testing.T) {
	for text, want := range map[string]float64{
		"«five minutes»": 300, "«1 %»": 0.01, "«64 KiB»": 65536, "«1,000»": 1000, "«10 * time.Second»": 10, "«time.Minute»": 60, "«64 << 10»": 65536,
		"«1h»": 3600, "«an hour»": 3600, "«16»": 16, "«eight»": 8, "«0.5pp»": 0.005, "«half a minute»": 30, "«10_000»": 10000, "«512Mi»": 512 << 20,
	} {
		if got, err := quantity(text); err != nil || got != want {
			t.Errorf("quantity(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := quantity("«a few seconds»"); err == nil {
		t.Errorf("a few seconds are %v", got)
	}
}

// bound is a limit that a sentence gives as a number.
var bound = regexp.MustCompile(`(?i)\b(?:at\s+most|at\s+least|up\s+to|no\s+more\s+than|within)\s+(?:[a-z]+\s+)?` + aNumber + `|` + aNumber + `(?:\s+[\w%]+)?\s+at\s+(?:the\s+)?(?:most|least)\b`)

const aNumber = `\b(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|(?:an?|half\s+an?)\s+(?:second|minute|hour|day|fifth))\b`

// TestLimitsWithANumberAreShown: a passage with "at most", "at least", "up to" or "within" and a number names what
// shows it, or its number is in the table of figures, or it is said here whose limit it is.
func TestLimitsWithANumberAreShown(t *testing.T) {
	unused := maps.Clone(otherwiseShown)
	for _, p := range passages(t) {
		limit := bound.FindString(p.said)
		if limit == "" || shown.MatchString(p.text) || strings.Contains(p.text, "go test ") {
			continue
		}
		text := oneLine(p.text)
		if excepted := mentions(text, otherwiseShown, unused); !excepted && !isFigure(p.page, text) {
			t.Errorf("%s: nothing compares %q with the code: %s", p.page, oneLine(limit), text)
		}
	}
	for phrase := range unused {
		t.Errorf("no limit of a page is in %q: remove it from this test", phrase)
	}
}

// measured is a number with a unit of time or size, or a percentage.
var measured = regexp.MustCompile(`(?i)\b(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|half\s+an?)[\s-]+(?:s|ms|seconds?|minutes?|min|hours?|h|days?|[KMG]iB|kB|bytes)\b|\b\d[\d,.]*\s*%`)

// TestNumbersWithAUnitAreShown: what shows a time, a size or a percentage is named in its passage, or in the sentence
// that leads to its list or table, or its number is in the table of figures, or it is said here why it needs neither.
func TestNumbersWithAUnitAreShown(t *testing.T) {
	unused := maps.Clone(unclaimed)
	for _, p := range passages(t) {
		number := measured.FindString(heading.ReplaceAllString(p.said, ""))
		if number == "" || shown.MatchString(p.text) || shown.MatchString(p.lead) {
			continue
		}
		text := oneLine(p.text)
		if excepted := mentions(text, unclaimed, unused); !excepted && !mentions(text, otherwiseShown, nil) && !isFigure(p.page, text) {
			t.Errorf("%s: nothing shows %q: %s", p.page, oneLine(number), text)
		}
	}
	for phrase := range unused {
		t.Errorf("no number is in %q: remove it from this test", phrase)
	}
}

// isFigure is whether a text of a page is in the table of figures.
func isFigure(page, text string) bool {
	return slices.ContainsFunc(figures, func(f figure) bool {
		return f.page == page && strings.Contains(text, oneLine(unmarked.Replace(f.says)))
	})
}

// unclaimed are phrases of passages whose numbers are an example, an instruction or another program's, or are shown
// where the reason says.
var unclaimed = map[string]string{
	"A pass at 5 % says little about 50 %":                  "an example",
	"An app with 2,000 requests a second of 0.2 seconds":    "an example",
	"and each weight lasts 30 seconds":                      "how the benchmark is set up, in e2e/bench",
	"with a hold of 10 seconds each; promoted.":             "how the benchmark is set up, in e2e/bench",
	"the new content starts at 0 % with the first step":     "no traffic, TestADelegatedReleaseEndsWellWhateverHappens",
	"with its 95 % interval":                                "the usual interval",
	"and below 100 % `HTTPRouteRequestPercentageMirror`":    "the Gateway API's",
	"`mirror` below 100 % where the API can't say it":       "the Gateway API's",
	"wait for some 15 to 20 s, until another manager":       "controller-runtime's lease of 15 s, and its retries",
	"wait for about two seconds: it gives the lease back":   "controller-runtime's retries every 2 s",
	"take headers of 16 kB, if tokens have many groups":     "an instruction",
	"Delete the Deployment half a minute after that":        "an instruction",
	"Wait half a minute, so that every node and gateway":    "an instruction",
	"4. Wait half a minute, so that clients of the proxies": "an instruction",
	"The third number in a row above 0.8 seconds":           "the limit of the example",
	"The seven weights are 1, 2, 4, 8, 16, 32 and 50 %":     "the weights of the example, which its test prints",
	"A canary that grows from 5 % to 50 % gets half":        "an example",
	"the programs are compiled from Go modules":             "how long a machine compiles",
	"in two to five seconds and without root":               "how long a machine starts etcd",
	"that waits five seconds before it stops accepting":     "the app's",
	"A window takes about 100 bytes":                        "MaxText in the table of figures, divided by 500 windows",
	"the canary gets 95 % of the traffic":                   "100 less the holdout in the table of figures",
	"not every day has 24 hours":                            "the calendar's",
	"a window of 8 hours is open for 8 hours":               "an example",
	"Traefik follows EndpointSlices with the same two":      "Traefik's",
	"512 MiB were not enough for 1,000 requests a second":   "seen with Traefik",
	"as quantities: `10m` is 10 ms":                         "the API server's quantities",
	"It takes ten minutes. You need a cluster":              "how long a reader takes",
}

// otherwiseShown are phrases of passages whose limits are not Serin's, or are no limits.
var otherwiseShown = map[string]string{
	"Latencies are counted in buckets":                  "says what a p99 is",
	"Events that come while a split waits for its turn": "make bench-controller counts them, says the page",
	"Kubernetes updates the file within about a minute": "the kubelet's",
	"up to about 450 such requests a second":            "28,000 ports, each for a minute",
	"by the status that the client got, within 0.3 s":   "nginx writes its log after 0.2 s, and the agent reads it after 0.1 s",
	"without the API: [when the next second has begun]": "the decision that it links adds it up",
	"were rolled back within a day":                     "TestAlertsFireOnTheirSeriesAndOnNoOther plays the alert",
	"the chart's values are enough":                     "make bench-controller measures it, says the page",
	"(six or more) begin within ten seconds":            "the decision that it links counts them",
	"up to 0.9 s on a busy one":                         "seen with Traefik",
	"`providers.providersThrottleDuration`":             "Traefik's",
	"at least two scrapes":                              "of the Prometheus",
	"Answers of Prometheus before 2.43 may include":     "of Prometheus",
	"Each history has up to two of these user actions":  "what a test tries",
	"Nothing may fail but at moments at which":          "what a test asks for",
	"You get an answer within five working days":        "the maintainers'",
}

var figures = []figure{
	{"README.md", "in at most «1 %» of releases", "api/v1alpha1/analysis_types.go", `default="«1%»" MaxFalseRollback`},

	{"docs/how-to/first-rollout.md", "larger and longer, up to «an hour»", "cmd/kubectl-traffic/rolloutview/propose.go", "longestHold = «time.Hour»"},
	{"docs/how-to/first-rollout.md", "it assumes «20» requests", "cmd/kubectl-traffic/rolloutinit/write.go", "PerSecond: «20»"},
	{"docs/how-to/first-rollout.md", "of which «0.1 %» fail. ## Check", "cmd/kubectl-traffic/rolloutinit/write.go", "FailureRate: «0.001»"},

	{"docs/analysis.md", "Serin asks every «five seconds»", "analysis/length.go", "WindowLength = «5 * time.Second»"},
	{"docs/analysis.md", "maxFalseRollback: «1%»", "api/v1alpha1/analysis_types.go", `default="«1%»" MaxFalseRollback`},
	{"docs/analysis.md", "tolerance: «0.5pp»", "api/v1alpha1/analysis_types.go", `default="«0.5pp»" Tolerance`},
	{"docs/analysis.md", "maxBadPromotion: «1%»", "api/v1alpha1/analysis_types.go", `default="«1%»" MaxBadPromotion`},
	{"docs/analysis.md", "minEvidence: «30s»", "api/v1alpha1/analysis_types.go", `default="«30s»" MinEvidence`},
	{"docs/analysis.md", "startup: {for: «15s»,", "api/v1alpha1/analysis_types.go", `default="«15s»" For`},
	{"docs/analysis.md", "tolerate: «25pp»}", "api/v1alpha1/analysis_types.go", `default="«25pp»" Tolerate`},
	{"docs/analysis.md", "For «15 seconds» (`startup`)", "api/v1alpha1/analysis_types.go", `default="«15s»" For`},
	{"docs/analysis.md", "«25» percentage points more are tolerated", "api/v1alpha1/analysis_types.go", `default="«25»pp" Tolerate`},
	{"docs/analysis.md", "minRequests: «50»", "api/v1alpha1/analysis_types.go", "default=«50» // +kubebuilder:validation:Minimum=1 // +kubebuilder:validation:Maximum=1000000000 MinRequests"},
	{"docs/analysis.md", "consecutiveFailureLimit: «3»", "api/v1alpha1/analysis_types.go", "default=«3» // +kubebuilder:validation:Minimum=1 // +kubebuilder:validation:Maximum=100 ConsecutiveFailureLimit"},
	{"docs/analysis.md", "≤ «1.1» · p", "analysis/judge/absorb.go", "countSlope = «1.1»"},
	{"docs/analysis.md", "≤ «1.25» · p", "analysis/judge/absorb.go", "edgeSlope = «1.25»"},
	{"docs/analysis.md", "from stable's first «5,000» requests", "analysis/judge/metric.go", "thorough = «5000»"},
	{"docs/analysis.md", "but at least «100».", "analysis/judge/metric.go", "opening = «100»"},
	{"docs/analysis.md", "latency («0.5»)", "analysis/judge/config.go", "LatencyWeight: «0.5»,"},
	{"docs/analysis.md", "The last «5» % stay on stable", "analysis/policy/course.go", "Holdout = «5»"},
	{"docs/analysis.md", "each time «100» requests of the step", "analysis/judge/limit.go", "DefaultMinSamples = «100»"},
	{"docs/analysis.md", "the newest number is older than «five minutes»", "analysis/judge/limit.go", "DefaultStaleAfter = «5 * time.Minute»"},
	{"docs/analysis.md", "at most «20 seconds» old", "analysis/length.go", "StaleAfter = «4 * WindowLength»"},
	{"docs/analysis.md", "makes it 1 to «10 seconds»", "cmd/serin/manager.go", "length of a window of analysis; 1s to «10s»"},
	{"docs/analysis.md", "at most «1 %» ever have a mismatch", "analysis/shares/assess.go", "MaxFalseAlarm = «0.01»"},
	{"docs/analysis.md", "at most «4 KiB»", "analysis/judge/encode.go", "stateSize = «4096»"},

	{"docs/analysistemplate.md", "«16» metrics in all", "api/v1alpha1/analysisresult_types.go", "MaxResultMetrics = «16»"},
	{"docs/analysistemplate.md", "among all comparisons («10»)", "api/v1alpha1/analysistemplate_types.go", "default=«10»"},
	{"docs/analysistemplate.md", "«5 s» to 1 h,", "controllers/sampling/resolve/metric.go", "minInterval = «5 * time.Second»"},
	{"docs/analysistemplate.md", "5 s to «1 h»,", "controllers/sampling/resolve/metric.go", "maxInterval = «time.Hour»"},
	{"docs/analysistemplate.md", "at most «50 s» for a comparison", "controllers/sampling/resolve/metric.go", "maxWindow = «50 * time.Second»"},
	{"docs/analysistemplate.md", "at least «1 m» for a repeated Job", "controllers/sampling/job/make.go", "minRepeat = «time.Minute»"},
	{"docs/analysistemplate.md", "repeated Job; «30 s»", "controllers/sampling/resolve/metric.go", "defaultInterval = «30 * time.Second»"},
	{"docs/analysistemplate.md", "no answer within «10 s»", "analysis/source/fetch/fetch.go", "DefaultTimeout = «10 * time.Second»"},
	{"docs/analysistemplate.md", "an answer of more than «1 MiB»", "analysis/egress/client.go", "MaxBody = «1 << 20»"},
	{"docs/analysistemplate.md", "a JSON of at most «1 MiB»", "analysis/egress/client.go", "MaxBody = «1 << 20»"},
	{"docs/analysistemplate.md", "the last «12» measurements", "api/v1alpha1/analysisresult_types.go", "MaxMeasurements = «12»"},
	{"docs/analysistemplate.md", "at most every «15 seconds»", "controllers/sampling/metrics/loop.go", "o.WriteEvery = «15 * time.Second»"},
	{"docs/analysistemplate.md", "may be «two minutes» old", "api/v1alpha1/provider_types.go", `default="«2m»" MaxAge`},
	{"docs/analysistemplate.md", "may run for «10 minutes»", "controllers/sampling/job/make.go", "defaultDeadline = «10 * 60»"},
	{"docs/analysistemplate.md", "at most «an hour»)", "controllers/sampling/job/make.go", "maxDeadline = «60 * 60»"},
	{"docs/analysistemplate.md", "at most «6»)", "controllers/sampling/job/make.go", "maxBackoff = «6»"},

	{"docs/canaryrelease.md", "«160 MiB» of memory", "controllers/canaryrelease/child/releases.go", "memory = «160 << 20»"},
	{"docs/canaryrelease.md", "«30 seconds» for a render", "controllers/canaryrelease/child/releases.go", "renderTime = «30 * time.Second»"},
	{"docs/canaryrelease.md", "«8 MiB» for a record", "controllers/canaryrelease/child/releases.go", "maxRecords = «8 << 20»"},
	{"docs/canaryrelease.md", "«2 MiB» for what the canary needs", "controllers/canaryrelease/releases/wire.go", "MaxAnswer = «2 << 20»"},
	{"docs/canaryrelease.md", "again after «five minutes»", "controllers/canaryrelease/helm.go", "limitRetry = «5 * time.Minute»"},
	{"docs/canaryrelease.md", "written every «15 seconds» at most", "controllers/release/helmrelease/report.go", "figuresEvery = «15 * time.Second»"},
	{"docs/canaryrelease.md", "tried again after «a minute» at first", "controllers/release/helmrelease/upgrade.go", "retryUpgrade = «time.Minute»"},
	{"docs/canaryrelease.md", "later up to «an hour»", "controllers/release/helmrelease/upgrade.go", "mostRetryUpgrade = «time.Hour»"},
	{"docs/canaryrelease.md", "are read every «15 seconds»", "controllers/canaryrelease/reconciler.go", "recheck = «15 * time.Second»"},
	{"docs/canaryrelease.md", "waits at most «ten minutes»", "controllers/release/helmrelease/deprecate.go", "routerTimeout = «10 * time.Minute»"},
	{"docs/canaryrelease.md", "more than «56» characters", "controllers/release/helmrelease/refuse.go", "maxName = «56»"},

	{"docs/control.md", "more than «256» characters", "controllers/admission/sign.go", "mostOfAName = «256»"},

	{"docs/dashboard.md", "are read every «ten seconds»", "cmd/kubectl-traffic/dashboard/release.go", "rereadEvery = «10 * time.Second»"},
	{"docs/dashboard.md", "more than «60» of them", "cmd/kubectl-traffic/dashboard/traffic.go", "mostCallers = «60»"},
	{"docs/dashboard.md", "in the next «seven» days", "cmd/kubectl-traffic/dashboard/view/calendar.go", "calendarDays = «7»"},
	{"docs/dashboard.md", "at most «1 %» of the cases", "analysis/shares/assess.go", "MaxFalseAlarm = «0.01»"},

	{"docs/gatewayapi.md", "«five seconds» have passed", "traffic/gatewayapi/router.go", "DefaultSettle = «5 * time.Second»"},
	{"docs/gatewayapi.md", "«two seconds» after it has a ready endpoint", "controllers/trafficsplit/plan/routes.go", "EndpointTime = «2 * time.Second»"},
	{"docs/gatewayapi.md", "larger than «128 KiB»", "traffic/gatewayapi/record.go", "maxRecord = «128 << 10»"},
	{"docs/istio.md", "programmed «10 s» after", "traffic/istio/router.go", "DefaultSettle = «10 * time.Second»"},
	{"docs/istio.md", "more than «96 KiB»", "traffic/istio/record.go", "maxRecord = «96 << 10»"},
	{"docs/smi.md", "programmed «10 s» after", "traffic/smi/router.go", "DefaultSettle = «10 * time.Second»"},

	{"docs/hooks-and-notifications.md", "(«1 MiB» of it is read at most)", "analysis/egress/client.go", "MaxBody = «1 << 20»"},
	{"docs/hooks-and-notifications.md", "after about «10 seconds»", "controllers/notify/options.go", "o.CallAgain, «10*time.Second»"},
	{"docs/hooks-and-notifications.md", "no answer within «10 seconds»", "controllers/notify/options.go", "o.Timeout, «10*time.Second»"},
	{"docs/hooks-and-notifications.md", "at most «5 minutes»", "controllers/notify/options.go", "o.MaxRetry, «5*time.Minute»"},
	{"docs/hooks-and-notifications.md", "up to «5 minutes»", "controllers/notify/options.go", "o.MaxRetry, «5*time.Minute»"},

	{"docs/how-to/blue-green.md", "default is «30 seconds»", "api/v1alpha1/strategy_types.go", `default="«30s»" ScaleDownDelay`},
	{"docs/how-to/blue-green.md", "kube-proxies had «5 s» to follow", "controllers/release/deployment/preview.go", "PreviewSettle = «5 * time.Second»"},
	{"docs/how-to/configuration.md", "within «five seconds» of each other", "controllers/release/configuration.go", "settleTime = «5 * time.Second»"},
	{"docs/how-to/dashboard-in-the-cluster.md", "at most «ten minutes»", "cmd/kubectl-traffic/dashboard/login/browser.go", "flowTime = «10 * time.Minute»"},
	{"docs/how-to/failed-analysis.md", "«10 minutes» by default", "controllers/release/strategy/settings.go", "DefaultProgressDeadline = «10 * time.Minute»"},
	{"docs/how-to/gateways.md", "«five seconds» have passed", "traffic/gatewayapi/router.go", "DefaultSettle = «5 * time.Second»"},
	{"docs/how-to/gateways.md", "«ten seconds» after the write", "traffic/istio/router.go", "DefaultSettle = «10 * time.Second»"},
	{"docs/how-to/stop-using-it.md", "waited for, for «a minute»", "cmd/serin/check/uninstall.go", `"timeout", «time.Minute»`},
	{"docs/how-to/stop-using-it.md", "gives up after «two and a half minutes»", "charts/serin/templates/uninstall.yaml", "activeDeadlineSeconds: «150»"},

	{"docs/proxy.md", "given up after «10 s»", "traffic/nginx/conf/render_mirror.go", `"proxy_read_timeout", "«10s»"`},
	{"docs/proxy.md", "at most «128» are in flight", "traffic/nginx/conf/render_mirror.go", "maxCopies = «128»"},
	{"docs/proxy.md", "16 × «64 KiB» of headers", "traffic/nginx/conf/render_http.go", `"large_client_header_buffers", "16", "«64k»"`},
	{"docs/proxy.md", "«32 KiB» of headers", "traffic/nginx/conf/render_http.go", `"proxy_buffers", "8", "«32k»"`},
	{"docs/proxy.md", "«5 s» to connect to a backend", "traffic/nginx/conf/render_http.go", `"proxy_connect_timeout", "«5s»"`},
	{"docs/proxy.md", "«1 h» without a byte", "traffic/nginx/conf/render_http.go", `"proxy_read_timeout", "«1h»"`},
	{"docs/proxy.md", "«1 h» for an idle client connection", "traffic/nginx/conf/render_http.go", `"keepalive_timeout", "«1h»"`},
	{"docs/proxy.md", "up to «10,000» on one client connection", "traffic/nginx/conf/render_http2.go", `streams = "«10000»"`},
	{"docs/proxy.md", "After «30 minutes» clients are asked", "traffic/nginx/conf/render_http2.go", `connectionAge = "«30m»"`},
	{"docs/proxy.md", "for «a second» of idleness", "traffic/nginx/conf/render_http.go", `"keepalive", "512"}, [2]string{"keepalive_timeout", "«1s»"`},
	{"docs/proxy.md", "«five seconds» in all", "traffic/nginx/conf/render_http.go", `"keepalive_time", "«5s»"`},
	{"docs/proxy.md", "ends after «a minute» of silence", "proxy/udp/datagrams.go", "sessionIdle = «time.Minute»"},
	{"docs/proxy.md", "A port has up to «4,096».", "proxy/udp/datagrams.go", "maxSessions = «4096»"},
	{"docs/proxy.md", "after «a second» of silence", "proxy/udp/datagrams.go", "leaveIdle = «time.Second»"},
	{"docs/proxy.md", "within «two seconds» what is wanted", "proxy/agent/agent.go", "restoreAfter = «2 * time.Second»"},
	{"docs/proxy.md", "`--drain` («10 s»)", "cmd/serin-proxy/proxy.go", `"drain", «10*time.Second»`},
	{"docs/proxy.md", "`--drain-limit` («30 s»)", "cmd/serin-proxy/proxy.go", `"drain-limit", «30*time.Second»`},
	{"docs/proxy.md", "none has come for «three seconds»", "proxy/agent/drain.go", "quietTime = «3 * time.Second»"},
	{"docs/proxy.md", "`--quit-timeout` («30 s»)", "cmd/serin-proxy/proxy.go", `"quit-timeout", «30*time.Second»`},
	{"docs/proxy.md", "wait up to «six seconds»", "proxy/agent/agent.go", "scrapeTimeout = «6 * time.Second»"},
	{"docs/proxy.md", "counts up to «1,000» pairs", "proxy/counts/flows.go", "maxPairs = «1000»"},
	{"docs/proxy.md", "without a request for «10 minutes»", "proxy/counts/flows.go", "pairAge = «10 * time.Minute»"},
	{"docs/proxy.md", "at most «four» (`--workers`)", "cmd/serin-proxy/proxy.go", "maxWorkers = «4»"},
	{"docs/proxy.md", "`proxy.autoscaling.maxReplicas` («10»)", "charts/serin/values.yaml", "maxReplicas: «10»"},
	{"docs/proxy.md", "one for «ten» ready endpoints", "traffic/nginx/size.go", "endpointsPerProxy = «10»"},
	{"docs/proxy.md", "the last «16 s»", "proxy/agent/busy.go", "busySamples = «16»"},
	{"docs/proxy.md", "at most «65,536» (`--connections`)", "cmd/serin-proxy/proxy.go", `"connections", «65536»`},
	{"docs/proxy.md", "room for «four» connections for each request", "traffic/nginx/conf/capacity.go", "placesPerRequest = «4»"},
	{"docs/proxy.md", "[«two» at least]", "charts/serin/values.yaml", "scale`. replicas: «2»"},
	{"docs/proxy.md", "for «a second» at most", "proxy/udp/outliers.go", "probeTime = «time.Second»"},
	{"docs/proxy.md", "the first «eight» datagrams", "proxy/udp/sessions.go", "maxKept = «8»"},
	{"docs/proxy.md", "rounded to «0.01 %»", "traffic/nginx/conf/table.go", "1/Buckets of all requests («0.01 %»)"},

	{"docs/proxy.md", "those of nginx's last «0.2 s»", "proxy/accesslog/format.go", `flush = "«200ms»"`},
	{"docs/proxy.md", "served in its last «0.2 s» is in no", "proxy/accesslog/format.go", `flush = "«200ms»"`},
	{"docs/proxy.md", "its requests end after «5 s»", "traffic/nginx/conf/render_http.go", `"proxy_connect_timeout", "«5s»"`},
	{"docs/proxy.md", "histogram, «1 ms» to 60 s", "proxy/counts/counter.go", "durationBounds = []float64{ «0.001»,"},
	{"docs/proxy.md", "histogram, 1 ms to «60 s»", "proxy/counts/counter.go", "5, 10, 30, «60», }"},
	{"docs/proxy.md", "the same requests, «1 ms» to 30 s", "proxy/counts/flows.go", "flowBounds = [...]float64{«0.001»,"},
	{"docs/proxy.md", "the same requests, 1 ms to «30 s»", "proxy/counts/flows.go", "2.5, 5, 10, «30»}"},
	{"docs/proxy.md", "504: it took more than «10 s»", "traffic/nginx/conf/render_mirror.go", `"proxy_read_timeout", "«10s»"`},
	{"docs/proxy.md", "«64 KiB» of headers are taken", "traffic/nginx/conf/render_http.go", `"large_client_header_buffers", "16", "«64k»"`},

	{"docs/recording.md", "at most «64 KiB» of base64", "analysis/recording/text.go", "MaxText = «64 << 10»"},
	{"docs/recording.md", "the latest «ten» releases", "api/v1alpha1/analysisresult_types.go", "MaxRecordings = «10»"},

	{"docs/rollout.md", "compared every «five seconds»", "analysis/length.go", "WindowLength = «5 * time.Second»"},
	{"docs/rollout.md", "(default «10», at most 20)", "controllers/release/record/history.go", "defaultHistory = «10»"},
	{"docs/rollout.md", "(default 10, at most «20»)", "controllers/release/record/history.go", "MaxHistory = «20»"},
	{"docs/rollout.md", "`maxFalseRollback` | `«1%»`", "api/v1alpha1/analysis_types.go", `default="«1%»" MaxFalseRollback`},
	{"docs/rollout.md", "`tolerance` | `«0.5pp»`", "api/v1alpha1/analysis_types.go", `default="«0.5pp»" Tolerance`},
	{"docs/rollout.md", "`minRequests` | `«50»`", "api/v1alpha1/analysis_types.go", "default=«50» // +kubebuilder:validation:Minimum=1 // +kubebuilder:validation:Maximum=1000000000 MinRequests"},
	{"docs/rollout.md", "`consecutiveFailureLimit` | `«3»`", "api/v1alpha1/analysis_types.go", "default=«3» // +kubebuilder:validation:Minimum=1 // +kubebuilder:validation:Maximum=100 ConsecutiveFailureLimit"},
	{"docs/rollout.md", "`startup` | `{for: «15s»,", "api/v1alpha1/analysis_types.go", `default="«15s»" For`},
	{"docs/rollout.md", "`maxBadPromotion` | `«1%»`", "api/v1alpha1/analysis_types.go", `default="«1%»" MaxBadPromotion`},
	{"docs/rollout.md", "`minEvidence` | `«30s»`", "api/v1alpha1/analysis_types.go", `default="«30s»" MinEvidence`},

	{"docs/schedule.md", "At most «16» windows", "api/v1alpha1/schedule_types.go", "MaxItems=«16» Windows"},
	{"docs/schedule.md", "and «16» freezes", "api/v1alpha1/schedule_types.go", "MaxItems=«16» Freezes"},

	{"docs/sizing.md", "| at most «160 MiB» |", "controllers/canaryrelease/child/releases.go", "memory = «160 << 20»"},
	{"docs/sizing.md", "limit of «1,184 MiB»", "charts/serin/values.yaml", "memory: «1184Mi»"},
	{"docs/sizing.md", "`smi`, `nginx` | «9», 26, 40", "docs/benchmarks.md", "| all writes | «9» | 26 | 40 |"},
	{"docs/sizing.md", "| 5,000 idle Rollouts | «268» MiB", "docs/benchmarks.md", "| memory, MiB | «268» |"},
	{"docs/sizing.md", "MiB; «302» MiB at a restart", "docs/benchmarks.md", "| peak memory of a restart, MiB | «302» |"},
	{"docs/sizing.md", "with 5,000 Rollouts | «4.5» seconds", "docs/benchmarks.md", "| CPU seconds of a restart | «4.5» |"},
	{"docs/threat-model.md", "more than «160 MiB»", "controllers/canaryrelease/child/releases.go", "memory = «160 << 20»"},
	{"docs/threat-model.md", "for a render, «30 seconds»", "controllers/canaryrelease/child/releases.go", "renderTime = «30 * time.Second»"},
	{"docs/threat-model.md", "an answer ends after «1 MiB»", "analysis/egress/client.go", "MaxBody = «1 << 20»"},
	{"docs/threat-model.md", "at most «2 MiB»", "controllers/canaryrelease/releases/wire.go", "MaxAnswer = «2 << 20»"},

	{"docs/trafficmetrics.md", "It lasts «90 days»", "certificate/bundle.go", "Validity = «90 * 24 * time.Hour»"},
	{"docs/trafficmetrics-sources.md", "for that warning; «15 s» unless", "cmd/serin/trafficmetrics/sources.go", `"prometheus-scrape-interval", «15*time.Second»`},
	{"docs/trafficmetrics-sources.md", "Window: «15 s».", "metricsapi/source/scrape/source.go", "DefaultWindow = «15 * time.Second»"},
	{"docs/trafficmetrics-sources.md", "Window: «30 s»,", "metricsapi/source/prometheus/source.go", "DefaultWindow = «30 * time.Second»"},
	{"docs/trafficmetrics-sources.md", "at most «five» queries", "metricsapi/source/prometheus/profile.go", "maxQueries = «5»"},
	{"docs/trafficmetrics-sources.md", "together are at most «five»", "metricsapi/source/prometheus/profile.go", "maxQueries = «5»"},

	{"docs/trafficsplit.md", "at most «256» bytes", "traffic/expression/expression.go", "MaxBytes = «256»"},
	{"docs/trafficsplit.md", "more than «100,000» steps", "traffic/nginx/conf/render_match.go", "LIMIT_MATCH=«100000»"},
	{"docs/trafficsplit.md", "a body of «100,000» bytes", "traffic/nginx/conf/render_mirror.go", "only those below «100,000» bytes are copied"},
	{"docs/trafficsplit.md", "from `1s` to `«8760h»`", "traffic/resolve/routing.go", "from 1s to «8760h»"},
	{"docs/trafficsplit.md", "idle for «a minute»", "proxy/udp/datagrams.go", "sessionIdle = «time.Minute»"},
	{"docs/trafficsplit.md", "for up to «an hour»", "traffic/nginx/conf/render.go", `"worker_shutdown_timeout", "«1h»"`},
	{"docs/trafficsplit.md", "silent for «a second»", "proxy/udp/datagrams.go", "leaveIdle = «time.Second»"},
	{"docs/trafficsplit.md", "more than «128» conditions", "traffic/nginx/conf/render_match.go", "maxConditions = «128»"},
	{"docs/trafficsplit.md", "taken the route, and «5 s» later", "traffic/gatewayapi/router.go", "DefaultSettle = «5 * time.Second»"},
	{"docs/trafficsplit.md", "are the same, and «5 s» later", "traffic/selector/router.go", "DefaultSettle = «5 * time.Second»"},

	{"docs/architecture.md", "the last «120» windows", "controllers/sampling/proxies.go", "keep = «120»"},
	{"docs/architecture.md", "up to «thirty seconds» of it", "controllers/release/state/jump.go", "LateLook = «30 * time.Second»"},
	{"docs/architecture.md", "within «two seconds» what is wanted", "proxy/agent/agent.go", "restoreAfter = «2 * time.Second»"},
	{"docs/architecture.md", "up to «two seconds» later", "controllers/trafficsplit/reporting/waiting.go", "Pause = «2 * time.Second»"},
	{"docs/architecture.md", "for up to «a minute»", "controllers/canaryrelease/figures.go", "lately = «time.Minute»"},
	{"docs/architecture.md", "its first requests «two seconds» later", "controllers/trafficsplit/plan/routes.go", "EndpointTime = «2 * time.Second»"},
	{"docs/architecture.md", "before the «five minutes» are over", "controllers/canaryrelease/helm.go", "limitRetry = «5 * time.Minute»"},
	{"docs/architecture.md", "of its last «0.2 s»; the killed", "proxy/accesslog/format.go", `flush = "«200ms»"`},
	{"docs/metrics.md", "at most «500» releases", "controllers/rollout/telemetry/gauges.go", "maxReleases = «500»"},
	{"docs/metrics.md", "ended after «10 seconds»", "controllers/kit/bounds/client.go", "CacheWait = «10 * time.Second»"},
	{"docs/metrics.md", "After «five minutes», while the API server", "controllers/kit/bounds/lag.go", "stuckAfter = «5 * time.Minute»"},

	{"docs/proxy.md", "| 512 MiB, the chart's | «1,412» |", "traffic/nginx/conf/capacity_test.go", "testSplit(web), 512 * mib, 0, Capacity{Requests: «1412»"},
	{"docs/proxy.md", "the chart's | 1,412 | «910» |", "traffic/nginx/conf/capacity_test.go", "testSplit(calls), 512 * mib, 0, Capacity{Requests: «910»"},
	{"docs/proxy.md", "1,412 | 910 | «1,950» |", "traffic/nginx/conf/capacity_test.go", "testSplit(db), 512 * mib, 0, Capacity{Streams: «1950»"},
	{"docs/proxy.md", "«569» requests of HTTP/1.1", "traffic/nginx/conf/capacity_test.go", "mirrored, 512 * mib, 0, Capacity{Requests: «569»"},
	{"docs/sizing.md", "| 512Mi, the default | «1,412» |", "traffic/nginx/conf/capacity_test.go", "testSplit(web), 512 * mib, 0, Capacity{Requests: «1412»"},
	{"docs/sizing.md", "the default | 1,412 | «910» |", "traffic/nginx/conf/capacity_test.go", "testSplit(calls), 512 * mib, 0, Capacity{Requests: «910»"},
	{"docs/sizing.md", "1,412 | 910 | «1,950» |", "traffic/nginx/conf/capacity_test.go", "testSplit(db), 512 * mib, 0, Capacity{Streams: «1950»"},
	{"charts/serin/README.md", "«160Mi» for each of up to five processes", "controllers/canaryrelease/child/releases.go", "memory = «160 << 20»"},
	{"examples/session-affinity/README.md", "up to «two hours»", "examples/session-affinity/rollout.yaml", "maxAge: «2h»"},

	{"docs/metrics.md", "Reconciles of one controller fail for «a quarter of an hour»", "charts/serin/files/monitoring/rules.yaml", "> 0.1' for: «15m»"},
	{"docs/metrics.md", "One reconcile runs for more than «a minute»", "charts/serin/files/monitoring/rules.yaml", "rollout|trafficsplit|canaryrelease|freeze\"}) > «60»'"},
	{"docs/metrics.md", "A release has been at the same step for «six hours»", "charts/serin/files/monitoring/rules.yaml", "serin_rollout_step offset «6h»)"},
	{"docs/metrics.md", "Releases wait for approval for «an hour»", "charts/serin/files/monitoring/rules.yaml", "WaitingForApproval\"}) > 0' for: «1h»"},
	{"docs/metrics.md", "in the state `WaitingForTraffic` for «ten minutes»", "charts/serin/files/monitoring/rules.yaml", "WaitingForTraffic\"}) > 0' for: «10m»"},
	{"docs/metrics.md", "serve different generations for «five minutes»", "charts/serin/files/monitoring/rules.yaml", "(serin_proxy_generation) > 0' for: «5m»"},
	{"docs/metrics.md", "Releases wait for evidence for «half an hour»", "charts/serin/files/monitoring/rules.yaml", "WaitingForEvidence\"}) > 0' for: «30m»"},
	{"docs/metrics.md", "in more than «ten» of the last 15 minutes", "charts/serin/files/monitoring/rules.yaml", "[15m:1m]) > «10»'"},
	{"docs/runbooks.md", "Reconciles of one controller have failed for «a quarter of an hour»", "charts/serin/files/monitoring/rules.yaml", "> 0.1' for: «15m»"},
	{"docs/runbooks.md", "One reconcile has run for more than «a minute»", "charts/serin/files/monitoring/rules.yaml", "rollout|trafficsplit|canaryrelease|freeze\"}) > «60»'"},
	{"docs/runbooks.md", "at the same step for «six hours»", "charts/serin/files/monitoring/rules.yaml", "serin_rollout_step offset «6h»)"},
	{"docs/runbooks.md", "waited for an approval for «an hour»", "charts/serin/files/monitoring/rules.yaml", "WaitingForApproval\"}) > 0' for: «1h»"},
	{"docs/runbooks.md", "in the state `WaitingForTraffic` for «ten minutes»", "charts/serin/files/monitoring/rules.yaml", "WaitingForTraffic\"}) > 0' for: «10m»"},
	{"docs/runbooks.md", "served different generations for «five minutes»", "charts/serin/files/monitoring/rules.yaml", "(serin_proxy_generation) > 0' for: «5m»"},
	{"docs/runbooks.md", "waited for evidence for «half an hour»", "charts/serin/files/monitoring/rules.yaml", "WaitingForEvidence\"}) > 0' for: «30m»"},
	{"docs/runbooks.md", "In more than «ten» of the last 15 minutes", "charts/serin/files/monitoring/rules.yaml", "[15m:1m]) > «10»'"},

	{"docs/analysis.md", "Fail after «two minutes»", "analysis/refusals/refusals.go", "Limit = «2 * time.Minute»"},
	{"docs/metrics.md", "(analysis.md#what-the-proxies-refuse) for «two minutes»", "analysis/refusals/refusals.go", "Limit = «2 * time.Minute»"},
	{"docs/runbooks.md", "(analysis.md#what-the-proxies-refuse) after «two minutes»", "analysis/refusals/refusals.go", "Limit = «2 * time.Minute»"},
	{"docs/canaryrelease.md", "| «1» % on every port of every Service", "controllers/release/helmrelease/weights.go", "defaultWeight = «1»"},
	{"docs/canaryrelease.md", "| «1» % on each of its ports", "controllers/release/helmrelease/weights.go", "defaultWeight = «1»"},
	{"docs/canaryrelease.md", "| «1» % on that port", "controllers/release/helmrelease/weights.go", "defaultWeight = «1»"},
	{"docs/differences.md", "(canaryrelease.md#what-gets-traffic) gets «1» %", "controllers/release/helmrelease/weights.go", "defaultWeight = «1»"},
	{"docs/canaryrelease.md", "an upgrade that has taken «ten minutes»", "controllers/canaryrelease/child/releases.go", "upgradeKeep = «10 * time.Minute»"},
	{"docs/canaryrelease.md", "and a deletion waits «ten minutes»", "controllers/release/helmrelease/deprecate.go", "routerTimeout = «10 * time.Minute»"},
	{"docs/how-to/blue-green.md", "no others; kube-proxies had «5 s»;", "controllers/release/deployment/preview.go", "PreviewSettle = «5 * time.Second»"},
	{"docs/recording.md", "a step that took «half a minute»", "controllers/release/debounce.go", "quietTime = «30 * time.Second»"},
	{"docs/replay.md", "or all but «5» % before", "analysis/policy/course.go", "Holdout = «5»"},
	{"docs/how-to/stop-using-it.md", "«five seconds»", "traffic/selector/router.go", "DefaultSettle = «5 * time.Second»"},
	{"docs/how-to/change-steps.md", "Its first step has «10» %", "docs/tutorials/first-release.md", "{weight: «10», hold: 2m}"},
	{"docs/quickstart.md", "It answers «5» % of its requests", "examples/demo/website-v3.yaml", `FAIL_PERCENT, value: "«5»"`},
	{"docs/verification.md", "connection every «5 ms» that is ended", "e2e/testdata/load.yaml", "PROBE, value: «5ms»"},
	{"docs/verification.md", "answers that take «8 s»", "e2e/testdata/load.yaml", "STREAM, value: «8s»"},
	{"docs/verification.md", "a request every «100 ms» on one", "e2e/testdata/load.yaml", "HOLD, value: «100ms»"},
	{"docs/verification.md", "takes «3 s» or longer", "e2e/judgement/judge.go", "late = «3 * time.Second»"},
	{"docs/tutorials/first-release.md", "After «two minutes» it gets half", "docs/tutorials/first-release.md", "{weight: 10, hold: «2m»}"},
	{"docs/tutorials/first-release.md", "after «five» more", "docs/tutorials/first-release.md", "{weight: 50, hold: «5»m}"},
	{"examples/canary/README.md", "is released with «10» % and", "examples/canary/rollout.yaml", "{weight: «10», hold"},
	{"examples/canary/README.md", "and then «50» % of", "examples/canary/rollout.yaml", "{weight: «50», hold"},
	{"examples/failed-analysis/README.md", "rolled back over «ten minutes»", "examples/failed-analysis/rollout.yaml", "rollBackOver: «10m»"},
	{"examples/ramp/README.md", "doubles from «1» % to", "examples/ramp/rollout.yaml", "{from: «1», to"},
	{"examples/ramp/README.md", "to «50» %, with", "examples/ramp/rollout.yaml", ", to: «50», times"},
	{"examples/ramp/README.md", "with «three minutes» for each", "examples/ramp/rollout.yaml", "every: «3m»"},
}
