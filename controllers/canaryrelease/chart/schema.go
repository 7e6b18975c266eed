// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

const schemaURL = "schema:values"

// checkSchemas checks values against the values.schema.json of a chart and of its
// sub-charts. Helm's own check quotes values, and loads whatever URL or file a
// schema refers to, from the operator's network and disk. Here references to
// elsewhere count as met: the API server has the last word anyway.
func checkSchemas(c *chartv2.Chart, values map[string]any) error {
	var problems []string
	if err := collectProblems(c, values, c.Name(), &problems); err != nil {
		return err
	}
	if len(problems) == 0 {
		return nil
	}
	return releases.Invalid(fieldConfig, "the chart's values.schema.json does not allow the values: "+strings.Join(problems, "; "))
}

func collectProblems(c *chartv2.Chart, values map[string]any, name string, problems *[]string) error {
	if len(c.Schema) > 0 {
		schema, err := compile(c.Schema)
		if err != nil {
			return releases.Invalid(fieldRelease, "values.schema.json of chart "+name+" is not a JSON schema: correct the chart")
		}
		var invalid *jsonschema.ValidationError
		if err := schema.Validate(values); errors.As(err, &invalid) {
			*problems = append(*problems, leaves(invalid, name)...)
		} else if err != nil {
			*problems = append(*problems, name+" can't be checked")
		}
	}
	for _, sub := range c.Dependencies() {
		raw, found := values[sub.Name()]
		if !found || raw == nil {
			continue
		}
		below, ok := raw.(map[string]any)
		if !ok {
			*problems = append(*problems, name+"/"+sub.Name()+" is no map")
			continue
		}
		if err := collectProblems(sub, below, name+"/"+sub.Name(), problems); err != nil {
			return err
		}
	}
	return nil
}

func compile(schema []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, local(document)); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// noLoader keeps a schema from reading files and URLs.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("not loaded") }

// local drops references to other documents.
func local(document any) any {
	switch d := document.(type) {
	case map[string]any:
		for k, v := range d {
			if ref, ok := v.(string); ok && (k == "$ref" || k == "$dynamicRef" || k == "$recursiveRef") && !strings.HasPrefix(ref, "#") {
				delete(d, k)
				continue
			}
			d[k] = local(v)
		}
	case []any:
		for i := range d {
			d[i] = local(d[i])
		}
	}
	return document
}

const maxProblems = 5

// leaves are the violations, without the values that violate.
func leaves(e *jsonschema.ValidationError, name string) []string {
	var found []string
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			found = append(found, name+" at /"+strings.Join(e.InstanceLocation, "/")+" "+violation(e.ErrorKind))
		}
		for _, c := range e.Causes {
			visit(c)
		}
	}
	visit(e)
	slices.Sort(found)
	found = slices.Compact(found)
	if more := len(found) - maxProblems; more > 0 {
		found = append(found[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return found
}

// violation says of a value what it is not; the schema is the chart's and no secret.
func violation(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "is of type " + k.Got + " but must be of type " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "lacks " + strings.Join(k.Missing, ", ")
	default:
		return "violates " + strings.Join(k.KeywordPath(), "/")
	}
}
