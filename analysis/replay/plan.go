// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Plan is what a release is judged by, step by step.
type Plan struct {
	// stages are the steps; without any, each step of the recording is the common
	// one, and the last step of the recording is the last.
	stages []policy.Stage
	common policy.Stage
	notes  []string
}

// Notes say what of a Rollout cannot be replayed and is left out.
func (p Plan) Notes() []string { return p.notes }

// DefaultPlan has the default settings, and no steps: each step of a recording
// can end at its first Pass, and evidence promotes in the last one.
func DefaultPlan() Plan {
	s, err := settings.Of(nil)
	if err != nil {
		panic("the default settings are invalid: " + err.Error()) // a test holds this
	}
	common := stage(s, 0)
	common.Early = true
	return Plan{common: common}
}

func stage(s settings.Settings, hold time.Duration) policy.Stage {
	s.Judge.Shares = true
	return policy.Stage{Hold: hold, Judge: s.Judge, OnInconclusive: policy.Inconclusive(s.OnInconclusive), Early: s.Early}
}

// stage returns a step of the recording, and whether it is the last.
func (p Plan) stage(step, lastRecorded int) (policy.Stage, bool, error) {
	switch {
	case len(p.stages) == 0:
		return p.common, step >= lastRecorded, nil
	case step >= len(p.stages):
		return policy.Stage{}, false, fmt.Errorf("step: %d; the Rollout has the steps 0 to %d", step, len(p.stages)-1)
	}
	return p.stages[step], step == len(p.stages)-1, nil
}

// ReadPlan reads the Rollout from YAML that may hold other objects too.
// Unknown fields of the Rollout are errors.
func ReadPlan(in io.Reader) (Plan, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var found *v1alpha1.Rollout
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Plan{}, err
		}
		ro, err := asRollout(document)
		switch {
		case err != nil:
			return Plan{}, err
		case ro != nil && found != nil:
			return Plan{}, errors.New("two Rollouts; give a file with one")
		case ro != nil:
			found = ro
		}
	}
	if found == nil {
		return Plan{}, fmt.Errorf("no Rollout of %s; give a file with one", v1alpha1.GroupVersion)
	}
	return NewPlan(&found.Spec)
}

// asRollout decodes a document that is a Rollout; nil for other objects.
func asRollout(document []byte) (*v1alpha1.Rollout, error) {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	if kind.Kind != "Rollout" || kind.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, nil
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	var ro v1alpha1.Rollout
	if err := decode(text, &ro); err != nil {
		return nil, fmt.Errorf("the Rollout: %w", err)
	}
	return &ro, nil
}

// NewPlan reads what the spec of a Rollout says about the analysis and the steps.
func NewPlan(spec *v1alpha1.RolloutSpec) (Plan, error) {
	read, err := settings.Of(spec.Analysis)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{common: stage(read, 0)}
	if a := spec.Analysis; a != nil && len(a.Metrics)+len(a.TemplateRefs) > 0 {
		plan.notes = append(plan.notes, "spec.analysis.metrics and templateRefs are left out: a recording does not hold what they measure")
	}
	if ramp := spec.Strategy.Ramp; ramp != nil {
		plan.common.Hold, err = parseHold("spec.strategy.ramp.every", ramp.Every)
		return plan, err
	}
	for i, s := range spec.Strategy.Steps {
		field := fmt.Sprintf("spec.strategy.steps[%d]", i)
		changed, err := read.ForStep(s.Analysis, field)
		hold, invalid := parseHold(field+".hold", s.Hold)
		if err = errors.Join(err, invalid); err != nil {
			return Plan{}, err
		}
		planned := stage(changed, hold)
		planned.Weight, planned.Untested = s.Weight, s.Weight == 0
		planned.Judge.Shares = len(s.Matches) == 0 && (s.Mirror == nil || *s.Mirror == 0)
		plan.stages = append(plan.stages, planned)
	}
	return plan, nil
}

func parseHold(field string, d v1alpha1.Duration) (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	hold, err := d.Parse()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return hold, nil
}
