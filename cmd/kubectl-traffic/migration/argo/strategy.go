// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"cmp"
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// canary converts the strategy that moves traffic by weights.
func (r *rollout) canary(f source.Field) {
	routing := f.At("trafficRouting")
	stable, canary := f.At("stableService"), f.At("canaryService")
	root := stable
	if smi := routing.At("smi", "rootService"); smi.Present() {
		root = smi
	} else if ping := f.At("pingPong", "pingService"); ping.Present() && !stable.Present() {
		root = ping
	}
	if name := root.Text(); name != "" {
		r.service(root, name)
	} else {
		r.serviceOf(f.At("stableService"))
	}
	for _, other := range []source.Field{stable, canary} {
		if name := other.Text(); name != "" && name != r.serin.Spec.Service {
			other.Note(source.ToDo, "the Service %s is no longer needed: have what refers to it refer to %s, and delete it", name, r.serin.Spec.Service)
		}
	}
	if routing.Present() {
		r.routing(routing)
	} else {
		f.At("steps").Note(source.Differs, "the weights are shares of requests, which Serin's proxies keep exactly; Argo Rollouts without trafficRouting shares by numbers of pods. For that, write router: none")
	}
	if a := f.At("analysis"); a.Present() {
		r.templates(a)
		if start := a.At("startingStep"); start.Present() && start.Int(0, 0, 1000) > 0 {
			start.Note(source.NoEqual, "the metrics are measured from the first step on")
		}
	}
	r.steps(f)
}

// defaultScaleDownDelay is Argo's.
const defaultScaleDownDelay = 30

// blueGreen converts the strategy that switches all traffic at once.
func (r *rollout) blueGreen(f source.Field) {
	b := &v1alpha1.BlueGreen{}
	r.serin.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: b}
	active, preview := f.At("activeService"), f.At("previewService")
	if active.Text() == "" {
		active.Missing("name the Service that clients call")
	}
	r.service(active, active.Text())
	if name := preview.Text(); name != "" {
		r.preview(b, preview, name)
	}
	if !f.At("autoPromotionEnabled").Flag(true) {
		b.Until = v1alpha1.UntilManual
	} else {
		b.Hold = target.Duration(seconds(f.At("autoPromotionSeconds"), 0))
	}
	f.At("autoPromotionSeconds").Read()
	b.ScaleDownDelay = cmp.Or(target.Duration(seconds(f.At("scaleDownDelaySeconds"), defaultScaleDownDelay)), "0s")
	for _, name := range []string{"prePromotionAnalysis", "postPromotionAnalysis"} {
		if a := f.At(name); a.Present() {
			r.templates(a)
			a.Note(source.Differs, "the metrics are measured before the switch and after it, for scaleDownDelay")
		}
	}
	if b.Until == "" && b.Hold == "" && f.At("prePromotionAnalysis").Present() {
		f.At("prePromotionAnalysis").Note(source.Differs, "the switch comes when each metric has been measured; write spec.strategy.blueGreen.hold to measure longer")
	}
}

// preview keeps the preview Service. One of a name that Serin needs can't stay.
func (r *rollout) preview(b *v1alpha1.BlueGreen, f source.Field, name string) {
	if root := r.serin.Spec.Service; slices.Contains([]string{root, root + "-stable", root + "-canary"}, name) {
		f.Note(source.ToDo, "Serin needs the name %s itself: give the preview Service another one, and write it to spec.strategy.blueGreen.previewService", name)
		return
	}
	b.PreviewService = name
	if given := r.set.Find("", "Service", r.object.Namespace(), name); given != nil {
		r.made = append(r.made, target.GivenService(given))
		return
	}
	f.Note(source.ToDo, "the Service %s was not given, and is not written: give it, or check that its selector has labels of the pods, and no rollouts-pod-template-hash", name)
}

func seconds(f source.Field, unset int32) time.Duration {
	return time.Duration(f.Int(unset, 0, 99999)) * time.Second
}
