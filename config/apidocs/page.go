// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schema is that of an object or a field.
type schema = apiextensionsv1.JSONSchemaProps

// width is how long the lines of a page are.
const width = 120

// page is a page in the making.
type page struct{ strings.Builder }

// render makes the page of a kind.
func render(crd apiextensionsv1.CustomResourceDefinition) string {
	version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
	root := *version.Schema.OpenAPIV3Schema
	p := &page{}
	fmt.Fprintf(p, "# Fields of %s\n\n<!-- Written by make generate-docs. Do not edit. -->\n\n", crd.Spec.Names.Kind)
	p.text("", root.Description)
	p.line("| | |\n| --- | --- |")
	p.line("| `apiVersion` | `" + crd.Spec.Group + "/" + version.Name + "` |")
	p.line("| `kind` | `" + crd.Spec.Names.Kind + "` |")
	p.line("| belongs to | " + map[apiextensionsv1.ResourceScope]string{
		apiextensionsv1.NamespaceScoped: "a namespace", apiextensionsv1.ClusterScoped: "no namespace",
	}[crd.Spec.Scope] + " |")
	if len(crd.Spec.Names.ShortNames) > 0 {
		p.line("| short names | `" + strings.Join(crd.Spec.Names.ShortNames, "`, `") + "` |")
	}
	p.line("")
	p.rules(root)
	for _, name := range []string{"spec", "status"} {
		if part, found := root.Properties[name]; found {
			p.object(name, part)
		}
	}
	// Kinds of the Service Mesh Interface may have fields beside the two.
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		if part := root.Properties[name]; !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, name) {
			p.object(name, part)
		}
	}
	return strings.TrimRight(strings.ReplaceAll(p.String(), "\n\n\n", "\n\n"), "\n") + "\n"
}

func (p *page) line(text string) { fmt.Fprintln(p, text) }

// object writes a section for an object, or for the items of a list of objects, and then
// those of the objects in it.
func (p *page) object(path string, s schema) {
	path, s = inner(path, s)
	p.line("## " + path + "\n")
	p.text("", s.Description)
	p.rules(s)
	if len(s.Properties) == 0 {
		p.line("* " + kind(s) + "\n")
		return
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range names {
		p.field(path+"."+name, name, s.Properties[name], slices.Contains(s.Required, name))
	}
	p.line("")
	for _, name := range names {
		if child := s.Properties[name]; isObject(child) {
			p.object(path+"."+name, child)
		}
	}
}

// inner is the object that a list or a map of objects holds, with its place.
func inner(path string, s schema) (string, schema) {
	for {
		switch {
		case s.Items != nil && s.Items.Schema != nil:
			description, rules := s.Description, s.XValidations
			s = *s.Items.Schema
			s.Description, s.XValidations = join(description, s.Description), slices.Concat(rules, s.XValidations)
			path += "[]"
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && len(s.Properties) == 0:
			description := s.Description
			s = *s.AdditionalProperties.Schema
			s.Description = join(description, s.Description)
			path += "{}"
		default:
			return path, s
		}
	}
}

func join(texts ...string) string {
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	return strings.Join(slices.Compact(texts), "\n\n")
}

// isObject is whether a field has fields itself, also in a list.
func isObject(s schema) bool {
	_, in := inner("", s)
	return len(in.Properties) > 0
}

func (p *page) field(path, name string, s schema, required bool) {
	facts := append([]string{kind(s)}, limits(s)...)
	if required {
		facts = append(facts, "required")
	}
	if s.Default != nil {
		facts = append(facts, "default `"+string(s.Default.Raw)+"`")
	}
	head := "* **`" + name + "`**: " + strings.Join(facts, ", ")
	if isObject(s) {
		at, _ := inner(path, s)
		p.line(head + ", [fields](#" + anchor(at) + ")")
		return // its section has the description
	}
	p.line(head)
	if s.Description != "" {
		p.line("")
		p.text("  ", s.Description)
	}
	for _, rule := range s.XValidations {
		p.wrapped("  ", "Rule: "+message(rule))
		p.line("")
	}
}

// anchor is how a link names the heading of an object.
func anchor(path string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "", "{", "", "}", "").Replace(path))
}

// text writes paragraphs.
func (p *page) text(indent, text string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			p.wrapped(indent, paragraph)
			p.line("")
		}
	}
}

// item writes an entry of a list.
func (p *page) item(text string) { p.lines("* ", "  ", text) }

// wrapped writes a paragraph in lines of the page's width.
func (p *page) wrapped(indent, paragraph string) { p.lines(indent, indent, paragraph) }

func (p *page) lines(first, indent, paragraph string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(paragraph)) {
		if len(line)+len(word) >= width && !empty {
			p.line(strings.TrimRight(line, " "))
			line = indent
		}
		line, empty = line+word+" ", false
	}
	p.line(strings.TrimRight(line, " "))
}

// rules lists what the API server checks beyond the fields themselves.
func (p *page) rules(s schema) {
	if len(s.XValidations) == 0 {
		return
	}
	p.line("The API server refuses what does not follow these rules:\n")
	for _, rule := range s.XValidations {
		p.item(message(rule))
	}
	p.line("")
}

func message(rule apiextensionsv1.ValidationRule) string {
	if rule.Message != "" {
		return rule.Message
	}
	return "`" + rule.Rule + "`"
}
