// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// A template of the world that reads copies is written "v1 ConfigMap/app=app-one".

func annotationOf(template string) string {
	_, annotation, _ := strings.Cut(template, " ")
	return annotation
}

// configure changes the annotation of the Deployment's template.
func (w *world) configure(annotation string) {
	image, _, _ := strings.Cut(w.dep.template, " ")
	w.dep.template, w.rejected = strings.TrimSpace(image+" "+annotation), ""
	if w.guard && w.dep.managedBy != "" {
		w.dep.paused = true
	}
}

// observeConfiguration is what the shell finds out about the one ConfigMap.
func (w *world) observeConfiguration() state.Configuration {
	if w.content == "" {
		return state.Configuration{Template: annotationOf(w.dep.template)}
	}
	app := configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"}
	f := configrevision.Facts{
		References: []configrevision.Reference{app}, Present: configrevision.Mapping{app: "app-" + w.content},
		Template: configrevision.ParseMapping(annotationOf(w.dep.template)),
		Recorded: configrevision.FromStatus(w.ro.Status.Configuration), Copies: w.copies,
	}
	for _, rs := range w.rss {
		f.Versions = append(f.Versions, configrevision.ParseMapping(annotationOf(rs.template)))
		f.Released = f.Released || rs.template == w.dep.template
	}
	r := configrevision.Resolve(f)
	c := state.Configuration{Wants: true, ChangedAt: w.contentAt, Template: annotationOf(w.dep.template), Wanted: r.Template.String(), Recorded: r.Recorded.Status(), Missing: r.Missing}
	for _, unused := range r.Unused {
		c.Unused = append(c.Unused, state.Copied{Kind: unused.Kind, Object: kit.Object{Name: unused.Name}})
	}
	return c
}

// setContent is what kubectl apply of the ConfigMap does.
func (w *world) setContent(content string) {
	w.content, w.contentAt = content, w.now
	w.dirty = true // the shell watches it
	w.say("user: content %s", content)
}

// setImage is what kubectl set image does: the annotation stays.
func (w *world) setImage() {
	w.setTemplate(strings.TrimSpace("v2 " + annotationOf(w.dep.template)))
}

func init() { scenarios = append(scenarios, configurationScenarios()...) }

func configurationScenarios() []scenario {
	const one, two = "ConfigMap/app=app-one", "ConfigMap/app=app-two"
	begin := func(w *world) {
		w.content = "one"
		w.ready()
	}
	return []scenario{
		{"a content is released like a template", func(w *world) {
			begin(w)
			w.setContent("two")
			w.run(2)
			w.ready()
		}},
		{"a bad content is rolled back and set back", func(w *world) {
			begin(w)
			w.failures["v1 "+two] = 5
			w.setContent("two")
			w.until("rolled back", w.rolledBack)
			w.run(30)
			w.setContent("one")
			w.run(2)
			w.ready()
		}},
		{"a content changes in the middle of a release", func(w *world) {
			begin(w)
			w.setImage()
			w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
			w.setContent("two")
			w.run(2)
			w.ready()
		}},
		{"a version that is undone reads its earlier content", func(w *world) {
			w.guard = true
			begin(w)
			w.setContent("two")
			w.run(2)
			w.ready()
			w.setTemplate("v1 " + one)
			w.run(2)
			w.ready()
			w.setImage()
			w.run(2)
			w.ready()
		}},
		{"a content and a template change at the same time", func(w *world) {
			begin(w)
			w.setContent("two")
			w.run(2)
			w.setImage()
			w.run(2)
			w.ready()
		}},
		{"a template changes, and its content some seconds later", func(w *world) {
			begin(w)
			w.setImage()
			w.run(2)
			w.setContent("two")
			w.run(2)
			w.ready()
		}},
		{"contents are no part of the version any more", func(w *world) {
			begin(w)
			w.content = ""
			w.say("user: asks for it no longer")
			w.run(2)
			w.ready()
		}},
	}
}

// The template must say what its pods read before any of them exists.
func TestNoCanaryIsMadeOfATemplateThatDoesNotSayWhatItReads(t *testing.T) {
	for _, s := range configurationScenarios() {
		w := newWorld(t)
		s.tell(w)
		for i, line := range w.log {
			if strings.Contains(line, "create canary s") && !strings.Contains(line, "ConfigMap/app=") && !slices.ContainsFunc(w.log[:i], func(l string) bool { return strings.Contains(l, "asks for it no longer") }) {
				t.Errorf("%s: %s", s.name, line)
			}
		}
	}
}

// A template that is about to change under a release must not keep the traffic
// from being judged.
func TestAContentThatCantBeKeptDoesNotHoldUpARollback(t *testing.T) {
	w := newWorld(t)
	w.content = "one"
	w.ready()
	w.setImage()
	w.until("weight 10", func() bool { return w.split != nil && w.split.observed == 10 })
	o := w.observe()
	o.Configuration.Wanted, o.Configuration.Missing = "ConfigMap/app=app-two", []v1alpha1.ConfigurationReference{{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"}}
	o.Rollout.Spec.Control = &v1alpha1.Control{Revision: o.Workload.Revision, Action: v1alpha1.ControlAbort}
	d := Decide(o)
	if d.Status.Decision == nil || d.Status.Decision.Action != v1alpha1.ActionRollBack {
		t.Fatalf("decided %+v", d.Status.Decision)
	}
	if n := len(d.Actions); n < 3 || d.Actions[n-1].String() != `set the template's configuration to "ConfigMap/app=app-two"` || !strings.HasPrefix(d.Actions[0].String(), "set the canary's weight to 0") {
		t.Errorf("actions %v: want the traffic first and the template last", d.Actions)
	}
}

func TestWhatCantBeHonouredIsSaidAndNothingIsReleased(t *testing.T) {
	for want, change := range map[string]func(*state.Observation){
		"spec.configuration: no policy. (ConfigurationUnavailable)": func(o *state.Observation) { o.Configuration.Problem = "no policy" },
		"spec.proxyPods.replicas: bad. (InvalidSpec)":               func(o *state.Observation) { o.ProxyPodsProblem = "replicas: bad" },
	} {
		w := newWorld(t)
		w.ready()
		o := w.observe()
		change(&o)
		d := Decide(o)
		if len(d.Actions) > 0 {
			t.Errorf("actions %v", d.Actions)
		}
		ro := &v1alpha1.Rollout{Status: d.Status}
		if got := readyMessage(ro); got != want {
			t.Errorf("says %s, want %s", got, want)
		}
	}
}
