// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Change is what to try in the place of the settings of a recording. Fields that are not set
// change nothing.
type Change struct {
	// Analysis has the fields of spec.analysis of a Rollout. Metrics and templates can't be
	// tried: a recording has the numbers of those that were measured.
	Analysis v1alpha1.Analysis `json:"analysis"`
	// Hold is how long each step is held at least.
	Hold v1alpha1.Duration `json:"hold,omitempty"`
}

// ParseChange reads settings such as analysis.tolerance=1pp. The error names the setting.
func ParseChange(list []string) (Change, error) {
	tree := map[string]any{}
	for _, setting := range list {
		path, text, found := strings.Cut(setting, "=")
		if !found || path == "" || text == "" {
			return Change{}, fmt.Errorf("%q is not a setting; write one as analysis.tolerance=1pp", setting)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return Change{}, fmt.Errorf("%s: %w", path, err)
		}
		if err := set(tree, strings.Split(path, "."), value); err != nil {
			return Change{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return Change{}, err
	}
	return ReadChange(text)
}

// set puts a value at its place in a tree.
func set(tree map[string]any, path []string, value any) error {
	for _, name := range path[:len(path)-1] {
		if tree[name] == nil {
			tree[name] = map[string]any{}
		}
		below, ok := tree[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s has a value already", name)
		}
		tree = below
	}
	last := path[len(path)-1]
	if tree[last] != nil {
		return errors.New("set twice; set it once")
	}
	tree[last] = value
	return nil
}

// ReadChange reads a change from YAML or JSON. Unknown fields are errors.
func ReadChange(text []byte) (Change, error) {
	var c Change
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return c, err
	}
	err = recording.Strict(object, &c)
	return c, err
}

// Changed is a recording with other settings, by which Run judges it. The windows stay: when
// the release went on, and at which weights, is what it was.
func Changed(windows []Window, c Change) ([]Window, error) {
	if len(windows) == 0 || windows[0].Line.Settings == nil {
		return nil, errors.New("the recording has no settings to change: it was not made by the operator; try a Rollout")
	}
	if len(c.Analysis.Metrics)+len(c.Analysis.TemplateRefs)+len(c.Analysis.Args) > 0 {
		return nil, errors.New("analysis.metrics, analysis.templateRefs and analysis.args can't be tried: a recording has the numbers of the metrics that were measured, and their limits")
	}
	out := slices.Clone(windows)
	for i := range out {
		old := out[i].Line.Settings
		if old == nil {
			continue
		}
		stage, err := old.Stage()
		if err == nil {
			stage, err = c.of(stage)
		}
		if err != nil {
			return nil, err
		}
		out[i].Line.Settings = recording.MakeSettings(stage)
	}
	return out, nil
}

// of is a step with the change.
func (c Change) of(stage policy.Stage) (policy.Stage, error) {
	s := settings.Settings{Judge: stage.Judge, OnInconclusive: v1alpha1.InconclusivePolicy(stage.OnInconclusive), Early: stage.Early}
	s, err := s.With(&c.Analysis)
	if err != nil {
		return stage, err
	}
	stage.Judge, stage.OnInconclusive, stage.Early = s.Judge, policy.Inconclusive(s.OnInconclusive), s.Early
	if c.Hold != "" {
		stage.Hold, err = parseHold("hold", c.Hold)
	}
	return stage, err
}
