// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"encoding/json"
	"regexp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// readers make Serin's provider of Argo's; false when it has no equivalent.
var readers = map[string]func(reader, source.Field) (v1alpha1.MetricProvider, bool){
	"prometheus": reader.prometheus,
	"web":        reader.web,
	"job":        reader.jobOf,
	"datadog":    reader.datadog,
	"graphite":   reader.graphite,
}

// elsewhere are providers that have no equivalent, with what to do.
var elsewhere = map[string]string{
	"newRelic":   "Serin's newRelic needs the number of the account: write the metric by hand",
	"cloudWatch": "Serin's cloudWatch takes one expression and a region: write the metric by hand",
	"influxdb":   "Serin's influxDB needs the address and the organization of the server: write the metric by hand",
	"wavefront":  "ask the server by the provider web",
	"kayenta":    "Serin compares canary and stable itself; ask Kayenta by the provider job",
	"skywalking": "ask the server by the provider web",
	"plugin":     "run what the plugin does as a Job, or ask its server by the provider web",
}

// provider is where a metric is measured; false when Serin has no equivalent.
func (r reader) provider() (v1alpha1.MetricProvider, bool) {
	f := r.field.At("provider")
	names := f.Keys()
	if len(names) != 1 {
		f.Fail("needs exactly one provider: remove or add one")
		return v1alpha1.MetricProvider{}, false
	}
	f = f.At(names[0])
	if words, is := elsewhere[names[0]]; is {
		f.Note(source.NoEqual, "%s. The metric is left out", words)
		return v1alpha1.MetricProvider{}, false
	}
	read := readers[names[0]]
	if read == nil {
		f.Fail("is not a provider that is known here: correct its name, or remove the metric")
		return v1alpha1.MetricProvider{}, false
	}
	return read(r, f)
}

func (r reader) prometheus(f source.Field) (v1alpha1.MetricProvider, bool) {
	address, known := r.filled(f.At("address"), nowhere)
	query, fits := r.query(f.At("query"))
	if f.At("address").Text() == "" && f.Present() {
		f.At("address").Note(source.NoEqual, "is not given here, but in the settings of Argo's controller: write it. The metric is left out")
		return v1alpha1.MetricProvider{}, false
	}
	p := v1alpha1.MetricProvider{Type: v1alpha1.ProviderPrometheus}
	p.Prometheus = &v1alpha1.PrometheusQuery{Address: v1alpha1.URL(address), Query: query}
	return p, known && fits && r.url(f.At("address"), address)
}

// url is whether Serin can call an address.
func (r reader) url(f source.Field, address string) bool {
	if callable.MatchString(address) {
		return true
	}
	f.Note(source.NoEqual, "%q is not an http or https address without a user name. The metric is left out", address)
	return false
}

var callable = regexp.MustCompile(`^https?://[^\s@]+$`)

// placeholder is an argument in a text.
var placeholder = regexp.MustCompile(`\{\{\s*args\.([-A-Za-z0-9_]+)\s*\}\}`)

// Where Serin takes arguments.
var (
	nowhere    = regexp.MustCompile(`a^`)
	anywhere   = regexp.MustCompile(placeholder.String())
	inMatchers = regexp.MustCompile(`(?:=|!=)\s*(?:"\{\{args\.[-A-Za-z0-9_]+\}\}"|'\{\{args\.[-A-Za-z0-9_]+\}\}')`)
	inURL      = regexp.MustCompile(`^https?://[^/?{}]+[/?].*`)
	asPattern  = regexp.MustCompile(`(=|!)~(\s*["']\{\{args\.[-A-Za-z0-9_]+\}\}["'])`)
)

// filled is a text with constants in the place of arguments that Serin does not take there;
// false when that leaves one.
func (r reader) filled(f source.Field, allowed *regexp.Regexp) (string, bool) {
	text := placeholder.ReplaceAllString(f.Text(), "{{args.$1}}")
	for range len(r.constants) + 1 {
		elsewhere := allowed.ReplaceAllString(text, "")
		m := placeholder.FindStringSubmatch(elsewhere)
		if m == nil {
			return text, true
		}
		value, constant := r.constants[m[1]]
		if !constant {
			f.Note(source.NoEqual, "the argument %s is where Serin accepts none, and its value is not known: write the value. The metric is left out", m[1])
			return text, false
		}
		text = strings.ReplaceAll(text, "{{args."+m[1]+"}}", value)
	}
	return text, true
}

// query is PromQL with arguments only where Serin takes them.
func (r reader) query(f source.Field) (string, bool) {
	text := placeholder.ReplaceAllString(f.Text(), "{{args.$1}}")
	if asPattern.MatchString(text) {
		f.Note(source.Differs, "an argument is compared as a text (=), not as a regular expression (=~)")
	}
	text = asPattern.ReplaceAllStringFunc(text, func(s string) string {
		m := asPattern.FindStringSubmatch(s)
		return strings.Replace(m[1], "!", "!=", 1) + m[2]
	})
	for _, label := range []string{"rollouts_pod_template_hash", "label_rollouts_pod_template_hash"} {
		if strings.Contains(text, label) {
			f.Note(source.ToDo, "the label of pods is pod-template-hash: have your Prometheus keep it as %s", strings.Replace(label, "rollouts_", "", 1))
		}
	}
	text = strings.ReplaceAll(text, "rollouts_pod_template_hash", "pod_template_hash")
	for range len(r.constants) + 1 {
		m := placeholder.FindStringSubmatch(inMatchers.ReplaceAllString(text, ""))
		if m == nil {
			return strings.TrimSpace(text), true
		}
		value, constant := r.constants[m[1]]
		if !constant {
			break
		}
		text = strings.ReplaceAll(text, "{{args."+m[1]+"}}", value)
	}
	f.Note(source.NoEqual, "an argument can only be the whole value of a label matcher with = or !=: write its value, or another label. The metric is left out")
	return text, false
}

func (r reader) web(f source.Field) (v1alpha1.MetricProvider, bool) {
	url, fits := r.filledURL(f.At("url"))
	p := v1alpha1.MetricProvider{Type: v1alpha1.ProviderWeb}
	p.Web = &v1alpha1.WebQuery{URL: v1alpha1.URL(url), JSONPath: strings.Replace(f.At("jsonPath").Text(), "{$", "{", 1)}
	if p.Web.JSONPath == "" {
		f.Note(source.NoEqual, "has no jsonPath: the answer must be JSON with a number. The metric is left out")
		fits = false
	}
	for _, h := range f.At("headers").Items() {
		value, known := r.filled(h.At("value"), anywhere)
		p.Web.Headers = append(p.Web.Headers, v1alpha1.WebHeader{Name: h.At("key").Text(), Value: value})
		fits = fits && known
	}
	if method := f.At("method"); method.Present() && method.Text() != "GET" {
		method.Note(source.NoEqual, "Serin calls with GET. The metric is left out")
		fits = false
	}
	return p, fits && r.url(f.At("url"), url)
}

// filledURL is an address with arguments in its path and its query only.
func (r reader) filledURL(f source.Field) (string, bool) {
	text := placeholder.ReplaceAllString(f.Text(), "{{args.$1}}")
	for range len(r.constants) + 1 {
		if !placeholder.MatchString(text) || inURL.MatchString(text) {
			return text, true
		}
		m := placeholder.FindStringSubmatch(text)
		value, constant := r.constants[m[1]]
		if !constant {
			break
		}
		text = strings.Replace(text, m[0], value, 1)
	}
	f.Note(source.NoEqual, "an argument can be in the path and the query of a URL, not before: write its value. The metric is left out")
	return text, false
}

func (r reader) datadog(f source.Field) (v1alpha1.MetricProvider, bool) {
	query, fits := r.filled(f.At("query"), anywhere)
	if query == "" {
		f.Note(source.NoEqual, "queries and formula are several: Serin takes one query. The metric is left out")
		return v1alpha1.MetricProvider{}, false
	}
	secret := "datadog"
	if name := f.At("secretRef", "name").Text(); name != "" {
		secret = name
	}
	f.At("secretRef").Read()
	f.At("query").Note(source.ToDo, "the Secret %s in the namespace of each Rollout needs the keys apiKey and appKey, the annotation serin.dev/allowed-hosts with the host, and a Role that lets the operator read it", secret)
	p := v1alpha1.MetricProvider{Type: v1alpha1.ProviderDatadog}
	p.Datadog = &v1alpha1.DatadogQuery{Query: query, Window: target.Duration(f.At("interval").Duration()), CredentialsRef: &v1alpha1.CredentialsReference{Name: secret}}
	return p, fits
}

func (r reader) graphite(f source.Field) (v1alpha1.MetricProvider, bool) {
	query, fits := r.filled(f.At("query"), anywhere)
	address, known := r.filled(f.At("address"), nowhere)
	p := v1alpha1.MetricProvider{Type: v1alpha1.ProviderGraphite}
	p.Graphite = &v1alpha1.GraphiteQuery{Address: v1alpha1.URL(address), Target: query}
	return p, fits && known && r.url(f.At("address"), address)
}

// jobOf is a Job whose arguments are environment variables.
func (r reader) jobOf(f source.Field) (v1alpha1.MetricProvider, bool) {
	var job struct {
		Metadata metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec     batchv1.JobSpec   `json:"spec"`
	}
	f.Decode(&job)
	spec := &job.Spec.Template.Spec
	fits := true
	for i := range spec.Containers {
		expand(spec.Containers[i].Command)
		expand(spec.Containers[i].Args)
		for j := range spec.Containers[i].Env {
			expandOne(&spec.Containers[i].Env[j].Value)
		}
	}
	raw, err := json.Marshal(job)
	if err != nil {
		f.Fail("can't be written: %v", err)
		return v1alpha1.MetricProvider{}, false
	}
	if m := placeholder.FindStringSubmatch(string(raw)); m != nil {
		f.Note(source.NoEqual, "the argument %s is outside command, args and env: write its value. The metric is left out", m[1])
		fits = false
	}
	p := v1alpha1.MetricProvider{Type: v1alpha1.ProviderJob}
	p.Job = &v1alpha1.JobQuery{}
	p.Job.Template.Raw = raw
	return p, fits
}

func expand(texts []string) {
	for i := range texts {
		expandOne(&texts[i])
	}
}

// expandOne names the environment variable that Serin sets for each argument.
func expandOne(text *string) {
	*text = placeholder.ReplaceAllStringFunc(*text, func(s string) string {
		name := placeholder.FindStringSubmatch(s)[1]
		return "$(SERIN_ARG_" + strings.ReplaceAll(strings.ToUpper(name), "-", "_") + ")"
	})
}
