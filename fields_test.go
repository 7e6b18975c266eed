// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var (
	// asked is a command of kubectl with a template of fields; its groups are the resource and the template.
	asked = regexp.MustCompile(`kubectl (?:-n \S+ )?get ([a-z.]+)[ /][^|;\n]*?-o jsonpath='([^']*)'`)
	// expression is one of a template, and key a part of its path.
	expression = regexp.MustCompile(`\{([^}]*)\}`)
	key        = regexp.MustCompile(`\.((?:\\\.|[\w/-])+)|\[[^\]]*\]`)
)

// TestFieldsThatDocumentsAskForExist: a command of a page that prints a field of Serin's kinds names one of the schema.
// kubectl prints nothing for a field that is not there.
func TestFieldsThatDocumentsAskForExist(t *testing.T) {
	kinds, found := schemas(t), 0
	for _, file := range sources(t, ".md") {
		if file == "CHANGELOG.md" || strings.HasPrefix(file, "docs/decisions/") {
			continue // says what was
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range asked.FindAllStringSubmatch(strings.ReplaceAll(string(content), "\\\n", " "), -1) {
			schema := kinds[command[1]]
			if schema == nil {
				continue // not of Serin
			}
			found++
			if err := asksFor(schema, command[2]); err != nil {
				t.Errorf("%s: %s: %v", file, command[0], err)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands were found", found)
	}
}

func TestAFieldThatIsNotThereIsFound(t *testing.T) {
	rollout := schemas(t)["rollouts.serin.dev"]
	for template, there := range map[string]bool{
		`{.status.control.ignored}{"\n"}`: true,
		`{range .status.history[*]}{.endedAt}{range .interventions[*]}{.by}{end} {.outcome}{end}{.spec.paused}`: true,
		`{.status.conditions[?(@.type=="Ready")].message}`:                                                      true,
		`{.metadata.annotations.serin\.dev/resume}`:                                                             true,
		`{.status.ignored}`: false,
		`{range .status.history[*]}{range .interventions[*]}{.outcome}{end}{end}`: false,
	} {
		if err := asksFor(rollout, template); (err == nil) != there {
			t.Errorf("%s: %v", template, err)
		}
	}
}

type schema = apiextensionsv1.JSONSchemaProps

// schemas are those of the kinds, by the names that commands have for them.
func schemas(t *testing.T) map[string]*schema {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("config", "crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions, %v", len(files), err)
	}
	all := map[string]*schema{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			for _, name := range append(crd.Spec.Names.ShortNames, crd.Spec.Names.Plural, crd.Spec.Names.Singular, crd.Name) {
				if v.Storage {
					all[name] = v.Schema.OpenAPIV3Schema
				}
			}
		}
	}
	return all
}

// asksFor follows the paths of a template, each from where its ranges are.
func asksFor(root *schema, template string) error {
	at := []*schema{root}
	for _, e := range expression.FindAllStringSubmatch(template, -1) {
		path, isRange := strings.CutPrefix(e[1], "range ")
		switch {
		case path == "end":
			at = at[:len(at)-1]
		case strings.HasPrefix(path, `"`):
		default:
			leads, err := below(at[len(at)-1], path)
			if err != nil {
				return err
			}
			if isRange {
				at = append(at, leads)
			}
		}
	}
	return nil
}

func below(s *schema, path string) (*schema, error) {
	for _, k := range key.FindAllStringSubmatch(path, -1) {
		name := strings.ReplaceAll(k[1], `\`, "")
		next, is := s.Properties[name]
		switch {
		case k[1] == "" && s.Items != nil:
			next = *s.Items.Schema
		case is:
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			next = *s.AdditionalProperties.Schema
		case name == "metadata" || len(s.Properties) == 0 && s.Type == "object":
			return s, nil // of every kind, or free
		default:
			return nil, fmt.Errorf("there is no %s in %s", k[0], path)
		}
		s = &next
	}
	return s, nil
}
