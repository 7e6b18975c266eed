// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// Flagger's defaults and bounds.
const (
	defaultInterval  = time.Minute
	shortestInterval = 10 * time.Second
	mostFailures     = 100
)

// analysis converts how a release goes on: by weights, by requests that match, or at once.
func (c *canary) analysis(f source.Field) {
	interval := max(f.At("interval").Duration(), shortestInterval)
	if !f.At("interval").Present() {
		interval = defaultInterval
	}
	threshold := min(max(f.At("threshold").Int(1, 0, 1<<31-1), 1), mostFailures)
	iterations := f.At("iterations").Int(0, 0, 1<<31-1)
	s := &c.serin.Spec.Strategy
	mirrored := c.mirror(f, interval)
	total := time.Duration(max(iterations, 1)) * interval
	switch {
	case f.At("match").Present():
		c.matches(f.At("match"), total)
		f.At("stepWeight").Read()
		f.At("maxWeight").Read()
	case iterations > 0 && len(mirrored) > 0:
		mirrored[0].Hold = target.Duration(total)
		s.Steps = mirrored
	case iterations > 0:
		s.Type, s.BlueGreen = v1alpha1.StrategyBlueGreen, &v1alpha1.BlueGreen{Hold: target.Duration(total)}
		f.At("iterations").Note(source.Differs, "before the switch, when no client calls the new version, only metrics of templates are judged; afterwards all of them for scaleDownDelay")
	default:
		c.weights(f, mirrored, interval)
	}
	c.affinity(f.At("sessionAffinity"))
	c.metrics(f, interval, threshold)
	c.hooks(f, interval, threshold)
	c.alerts(f)
	if threshold > 1 {
		f.At("threshold").Note(source.Differs, "%d failures of one metric in a row roll back; Flagger counts those of all checks together. The comparison with stable does not wait for them", threshold)
	}
}

// mirror is the step before all others in which requests are mirrored, if there is one.
func (c *canary) mirror(f source.Field, interval time.Duration) []v1alpha1.Step {
	weight := f.At("mirrorWeight").Int(100, 0, 100)
	if !f.At("mirror").Flag(false) || weight == 0 {
		return nil
	}
	if c.serin.Spec.Router == v1alpha1.RouterSMI {
		f.At("mirror").Note(source.NoEqual, "meshes that serve TrafficSplits mirror no requests")
		return nil
	}
	return []v1alpha1.Step{{Mirror: &weight, Hold: target.Duration(interval)}}
}

// weights are steps of a canary, or a ramp where they are even.
func (c *canary) weights(f source.Field, mirrored []v1alpha1.Step, interval time.Duration) {
	s := &c.serin.Spec.Strategy
	step, most := f.At("stepWeight").Int(0, 0, 100), f.At("maxWeight").Int(100, 0, 100)
	list := f.At("stepWeights").Items()
	switch {
	case len(list) == 0 && step == 0:
		f.At("stepWeight").Note(source.Assumed, "neither stepWeight, stepWeights nor iterations is given: a ramp by 10 points is written")
		step = 10
		fallthrough
	case len(list) == 0 && len(mirrored) == 0:
		from := min(step, max(most, 1))
		s.Ramp = &v1alpha1.Ramp{From: from, To: max(most, from), By: &step, Every: target.Duration(interval)}
		return
	}
	s.Steps = mirrored
	before := int32(0)
	add := func(weight int32) {
		s.Steps = append(s.Steps, v1alpha1.Step{Weight: weight, Hold: target.Duration(interval)})
		before = weight
	}
	for _, item := range list {
		weight := item.Int(0, 0, 100)
		if weight < before {
			item.Fail("is less than the weight before, %d: weights must not go down, so sort them", before)
		}
		add(weight)
	}
	for w := step; len(list) == 0 && before < most; w += step {
		add(min(w, most))
	}
	if len(s.Steps) > target.MostSteps {
		f.At("stepWeight").Fail("makes %d steps: at most %d are possible together with mirror, so take a larger one", len(s.Steps), target.MostSteps)
	}
}

// matches is A/B testing: requests that match go to the new version.
func (c *canary) matches(f source.Field, hold time.Duration) {
	group := target.RouteGroup(target.Meta(c.object, c.object.Name()+"-ab"))
	group.Labels, group.Annotations = nil, nil
	for i, m := range f.Items() {
		match := specsv1.HTTPMatch{Name: fmt.Sprintf("match-%d", i+1)}
		for _, key := range m.Keys() {
			switch key {
			case "headers":
				for _, name := range m.At(key).Keys() {
					match.Headers.Items = append(match.Headers.Items, specsv1.Header{Name: name, Regex: target.Expression(m.At(key, name))})
				}
			case "uri":
				match.PathRegex = target.Expression(m.At(key))
			case "method":
				match.Methods = append(match.Methods, specsv1.HTTPMethod(m.At(key, "exact").Text()))
			default:
				m.At(key).Fail("can't be a condition of an HTTPRouteGroup: remove it, or match a header, the uri or the method")
			}
		}
		group.Spec.Matches = append(group.Spec.Matches, match)
	}
	c.made = append(c.made, group)
	c.serin.Spec.Strategy.Type = v1alpha1.StrategyABTest
	c.serin.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 100, Matches: []string{group.Name}, Hold: target.Duration(hold)}}
}

// hookTimes are the times of hooks, by the type of a webhook.
var hookTimes = map[string]v1alpha1.HookTime{
	"confirm-rollout": v1alpha1.HookBeforeRelease, "pre-rollout": v1alpha1.HookBeforeStep, "rollout": v1alpha1.HookBeforeStep, "": v1alpha1.HookBeforeStep,
	"confirm-traffic-increase": v1alpha1.HookBeforeStep, "confirm-promotion": v1alpha1.HookBeforePromotion, "post-rollout": v1alpha1.HookAfterRelease,
}

// hooks are webhooks that are asked or told.
func (c *canary) hooks(f source.Field, interval time.Duration, threshold int32) {
	ro := &c.serin.Spec
	for _, w := range f.At("webhooks").Items() {
		kind, name := w.At("type").Text(), target.Name(w.At("name").Text(), 63)
		endpoint := v1alpha1.Endpoint{URL: w.At("url").Text()}
		w.At("timeout").Read() // of one request; Serin's is 10 seconds
		metadata := w.At("metadata")
		when, known := hookTimes[kind]
		switch {
		case kind == "event":
			ro.Notifications = append(ro.Notifications, v1alpha1.Notification{Name: name, Endpoint: endpoint, Format: v1alpha1.FormatCloudEvents})
			w.Note(source.Differs, "gets CloudEvents, whose JSON differs from Flagger's")
			continue
		case kind == "rollback":
			w.Note(source.NoEqual, "to roll back, run kubectl traffic rollout abort, or answer another hook with 403")
			continue
		case !known:
			w.At("type").Fail("is %q, which is not a type that is known here: correct it", kind)
			continue
		case metadata.At("cmd").Present() || metadata.At("type").Present():
			w.Note(source.NoEqual, "a hook sends no metadata, so that a load tester or test runner gets no command: run it as a Job (spec.analysis.metrics, provider job)")
			continue
		}
		hook := v1alpha1.Hook{Name: name, When: when, Endpoint: endpoint}
		if when == v1alpha1.HookBeforeStep && kind != "confirm-traffic-increase" {
			hook.Timeout = target.Duration(time.Duration(threshold) * interval)
			w.Note(source.Differs, "is called before each step until it answers with 200 to 299, and rolls back when it has not after %s", hook.Timeout)
		}
		if metadata.Present() {
			metadata.Note(source.NoEqual, "a hook sends what release it is about, and nothing else")
		}
		ro.Hooks = append(ro.Hooks, hook)
	}
	if len(ro.Hooks) > 0 {
		f.At("webhooks").Note(source.Differs, "the body of the requests differs, and 403 rolls back for good: see the page of hooks")
	}
	if n := len(ro.Hooks); n > target.MostHooks {
		f.At("webhooks").Fail("are %d hooks: at most %d are possible, so join some", n, target.MostHooks)
	}
}

// severities are the events that Serin sends instead of those of a severity.
var severities = map[string][]v1alpha1.NotificationKind{
	"error": {v1alpha1.NotifyRolledBack}, "warn": {v1alpha1.NotifyRolledBack, v1alpha1.NotifyWaiting},
}

// alerts are notifications of chats.
func (c *canary) alerts(f source.Field) {
	for _, a := range f.At("alerts").Items() {
		name, ref := a.At("name").Text(), a.At("providerRef")
		events := severities[a.At("severity").Text()]
		namespace := ref.At("namespace").Text()
		if namespace == "" {
			namespace = c.object.Namespace()
		}
		p := c.set.Find(Group, "AlertProvider", namespace, ref.At("name").Text())
		if p == nil {
			ref.At("name").Fail("the AlertProvider %s was not given: give its file too, or remove the alert", ref.At("name").Text())
			continue
		}
		address := p.Field("spec", "address").Text()
		if kind := p.Field("spec", "type").Text(); kind != "slack" && kind != "rocket" || address == "" {
			a.Note(source.NoEqual, "notifications go to chats that take Slack's format at a URL, or are CloudEvents: the AlertProvider has the type %q, or its address in a Secret", kind)
			continue
		}
		c.serin.Spec.Notifications = append(c.serin.Spec.Notifications, v1alpha1.Notification{
			Name: target.Name(name, 63), Endpoint: v1alpha1.Endpoint{URL: address}, Format: v1alpha1.FormatSlack, Events: events,
		})
	}
}

// variables are what a query of Flagger names.
func (c *canary) variables(m source.Field, interval string) map[string]string {
	vars := map[string]string{
		"name": c.object.Name(), "namespace": c.object.Namespace(), "service": c.service, "interval": interval,
		"target": c.serin.Spec.WorkloadRef.Name, "ingress": c.object.Field("spec", "ingressRef", "name").Text(),
	}
	for key, value := range m.At("templateVariables").Texts() {
		vars["variables."+key] = value
	}
	return vars
}

func names(vars map[string]string) []string { return slices.Sorted(maps.Keys(vars)) }
