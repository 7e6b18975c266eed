// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// Bounds of Serin's intervals.
const (
	shortestInterval = 5 * time.Second
	longestInterval  = time.Hour
	shortestJob      = time.Minute
	mostSamples      = 1000
	mostFailures     = 99
)

// use is how Rollouts use a template.
type use struct {
	// fields are arguments that Rollouts take from the release, and values those that they give.
	fields map[string]v1alpha1.ReleaseField
	values map[string]bool
	// dryRun are the names of metrics without influence; "*" is all of them.
	dryRun []string
}

// template turns an AnalysisTemplate or a ClusterAnalysisTemplate into one of Serin; nil when
// none of its metrics has an equal.
func (c *converter) template(o *source.Object) *v1alpha1.AnalysisTemplate {
	t := target.Template(o.Kind(), target.Meta(o, o.Name()))
	u := c.use(o.Kind(), o.Name())
	spec := o.Field("spec")
	constants := map[string]string{}
	for _, f := range spec.At("args").Items() {
		arg := argument(f, u)
		if arg.Value != nil && !u.values[arg.Name] {
			constants[arg.Name] = *arg.Value
		}
		t.Spec.Args = append(t.Spec.Args, arg)
	}
	for _, f := range spec.At("metrics").Items() {
		if m := (reader{field: f, constants: constants}).metric(u); m != nil {
			t.Spec.Metrics = append(t.Spec.Metrics, *m)
		}
	}
	prometheus := func(m v1alpha1.Metric) bool { return m.Provider.Prometheus != nil }
	if o.Kind() == v1alpha1.KindAnalysisTemplate && slices.ContainsFunc(t.Spec.Metrics, prometheus) {
		spec.At("metrics").Note(source.Differs, "queries of a Prometheus are confined to series with the label namespace=%q: where yours have none, write a ClusterAnalysisTemplate", namespaceOf(o))
	}
	o.Finish(knownInTemplate)
	if n := len(t.Spec.Metrics); n > target.MostMetrics {
		spec.At("metrics").Fail("has %d metrics that can be converted: a template has at most %d, so split it in two", n, target.MostMetrics)
	}
	if len(t.Spec.Metrics) == 0 {
		spec.At("metrics").Note(source.NoEqual, "no metric has an equivalent: the template is left out, and no Rollout refers to it")
		return nil
	}
	return t
}

func namespaceOf(o *source.Object) string {
	if o.Namespace() == "" {
		return "that of the Rollout"
	}
	return o.Namespace()
}

// argument of a template, with where its value comes from.
func argument(f source.Field, u *use) v1alpha1.MetricArgument {
	arg := v1alpha1.MetricArgument{Name: f.At("name").Text(), Field: u.fields[f.At("name").Text()]}
	from := f.At("valueFrom")
	switch {
	case arg.Field != "":
		f.At("value").Read()
	case f.At("value").Present():
		value := f.At("value").Text()
		arg.Value = &value
	case from.At("secretKeyRef").Present():
		arg.SecretKeyRef = &v1alpha1.SecretKeyReference{}
		from.At("secretKeyRef").Decode(arg.SecretKeyRef)
		from.At("secretKeyRef").Note(source.ToDo, "let the operator read that Secret in the namespace of each Rollout, with a Role and a RoleBinding, and name the host it goes to in its annotation serin.dev/allowed-hosts")
	case from.Present():
		arg.Field = releaseField(from)
	}
	return arg
}

// releaseField is what an argument takes from the release; "" when Serin has nothing like it.
func releaseField(from source.Field) v1alpha1.ReleaseField {
	hash, path := from.At("podTemplateHashValue"), from.At("fieldRef", "fieldPath")
	switch {
	case hash.Text() == "Latest":
		return v1alpha1.FieldCanaryRevision
	case hash.Text() == "Stable":
		return v1alpha1.FieldStableRevision
	case hash.Present():
		hash.Fail("%q is neither Stable nor Latest: correct it", hash.Text())
	case path.Text() == "metadata.name":
		return v1alpha1.FieldName
	case path.Text() == "metadata.namespace":
		return v1alpha1.FieldNamespace
	}
	return ""
}

// reader reads one metric.
type reader struct {
	field source.Field
	// constants are arguments with a value that no Rollout changes.
	constants map[string]string
	// job is whether the provider is a Job.
	job bool
}

func (r reader) metric(u *use) *v1alpha1.Metric {
	name := r.field.At("name").Text()
	m := &v1alpha1.Metric{MetricSettings: v1alpha1.MetricSettings{Name: target.Name(name, target.LongestMetric)}}
	if m.Name != name {
		r.field.At("name").Note(source.Differs, "%q is called %q", name, m.Name)
	}
	if m.Name == "" {
		r.field.At("name").Missing("give each metric a name of small letters and digits")
	}
	r.job = r.field.At("provider", "job").Present()
	provider, found := r.provider()
	if !found || !r.limits(m) {
		r.field.Read()
		return nil
	}
	m.Provider = provider
	r.interval(m)
	r.failures(m)
	m.DryRun = m.DryRun || slices.Contains(u.dryRun, name) || slices.Contains(u.dryRun, "*") || slices.Contains(u.dryRun, ".*")
	if job := m.Provider.Job; job != nil {
		job.Repeat = r.field.At("interval").Present()
	}
	return m
}

// interval is the time between two measurements, and their number.
func (r reader) interval(m *v1alpha1.Metric) {
	f := r.field.At("interval")
	shortest := shortestInterval
	if r.job {
		shortest = shortestJob
	}
	if d := f.Duration(); f.Present() {
		within := min(max(d, shortest), longestInterval)
		if within != d {
			f.Note(source.Differs, "is %s: Serin measures at intervals of %s to %s", target.Duration(within), target.Duration(shortest), target.Duration(longestInterval))
		}
		m.Interval = target.Duration(within)
	}
	count := r.field.At("count")
	if n := count.Int(0, 0, 1<<30); n > 0 {
		samples := min(n, mostSamples)
		m.MinSamples = &samples
		count.Note(source.Differs, "each step needs %d measurements before it ends, and goes on being measured", samples)
	} else if !f.Present() && !r.job {
		r.field.At("name").Note(source.Differs, "is measured every 30s as long as a step lasts, not once")
	}
}

// limits are what the conditions say; false when Serin has no equivalent.
func (r reader) limits(m *v1alpha1.Metric) bool {
	good, bad := r.field.At("successCondition"), r.field.At("failureCondition")
	if r.job {
		return true
	}
	use, read := good, success
	switch {
	case good.Present() && bad.Present():
		bad.Note(source.Differs, "only successCondition is used: a number that fulfils neither is a failure, not inconclusive")
	case bad.Present():
		use, read = bad, failure
	case !good.Present():
		r.field.At("name").Note(source.NoEqual, "has no condition: add successCondition, such as result[0] >= 0.95, or min and max in the written template. The metric is left out")
		return false
	}
	l, understood := read(use.Text())
	if !understood {
		use.Note(source.NoEqual, "%q is not a lower and an upper limit of one number: have the query compute one number, and write min and max. The metric is left out", use.Text())
		return false
	}
	if l.strict {
		use.Note(source.Differs, "min and max are acceptable themselves: a number that is exactly the limit passes")
	}
	if l.orMissing {
		use.Note(source.Differs, "missing data is never good: a step without it waits; make the query give a number, such as with \"or vector(0)\"")
	}
	l.settings(&m.MetricSettings)
	return true
}

// failures is how many measurements may fail.
func (r reader) failures(m *v1alpha1.Metric) {
	f := r.field.At("failureLimit")
	n := f.Int(0, -1, 1<<30)
	if n < 0 {
		m.DryRun = true
		f.Note(source.Differs, "a metric that can't fail is measured with dryRun")
		return
	}
	limit := min(n, mostFailures) + 1
	m.ConsecutiveFailureLimit = &limit
	if n > 0 {
		f.Note(source.Differs, "%d failures in a row roll back; Argo Rollouts counts all failures of a run", limit)
	}
}
