// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Object is one object of another tool.
type Object struct {
	// File that it was read from, or "cluster".
	File    string
	Content map[string]any
	// read are the paths that were asked for; what is below them is read too.
	read   map[string]bool
	report *Report
}

// Set are all objects that were given.
type Set struct {
	Objects []*Object
	Report  *Report
}

// NewSet makes an empty set.
func NewSet() *Set { return &Set{Report: &Report{}} }

// Add adds an object, or those of a list.
func (s *Set) Add(file string, content map[string]any) {
	if items, is := content["items"].([]any); is && strings.HasSuffix(text(content, "kind"), "List") {
		for _, item := range items {
			if m, is := item.(map[string]any); is {
				s.Add(file, m)
			}
		}
		return
	}
	s.Objects = append(s.Objects, &Object{File: file, Content: content, read: map[string]bool{}, report: s.Report})
}

// Of are the objects of a kind in a group.
func (s *Set) Of(group, kind string) (list []*Object) {
	for _, o := range s.Objects {
		if o.Group() == group && o.Kind() == kind {
			list = append(list, o)
		}
	}
	return list
}

// Find is the object of a kind by its name; nil when it was not given. A namespace that is
// not said is any.
func (s *Set) Find(group, kind, namespace, name string) *Object {
	for _, o := range s.Of(group, kind) {
		if o.Name() == name && (o.Namespace() == namespace || o.Namespace() == "" || namespace == "") {
			return o
		}
	}
	return nil
}

func text(m map[string]any, keys ...string) string {
	for _, key := range keys[:len(keys)-1] {
		m, _ = m[key].(map[string]any)
	}
	s, _ := m[keys[len(keys)-1]].(string)
	return s
}

// Group of the API, "" for the core.
func (o *Object) Group() string {
	group, _, found := strings.Cut(text(o.Content, "apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// Kind of the object.
func (o *Object) Kind() string { return text(o.Content, "kind") }

// Name of the object.
func (o *Object) Name() string { return text(o.Content, "metadata", "name") }

// Namespace of the object, "" when it is not said.
func (o *Object) Namespace() string { return text(o.Content, "metadata", "namespace") }

// ID is the object for users, as kubectl names it.
func (o *Object) ID() string {
	kind := strings.ToLower(o.Kind())
	if g := o.Group(); g != "" {
		kind += "." + g
	}
	if ns := o.Namespace(); ns != "" {
		return kind + "/" + ns + "/" + o.Name()
	}
	return kind + "/" + o.Name()
}

// Field is one by its names, from the top of the object.
func (o *Object) Field(names ...string) Field {
	return Field{object: o, value: o.Content, present: true}.At(names...)
}

// ignored is what says nothing of what a user wants.
var ignored = []string{"apiVersion", "kind", "metadata", "status"}

var index = regexp.MustCompile(`\[\d+\]`)

// Finish reports each field that was not read: with the advice of the longest entry of
// known that it is or is below, and else as an error.
func (o *Object) Finish(known map[string]string) {
	for _, path := range o.unread("", o.Content) {
		at, advice := advise(path, known)
		if at == "" {
			o.report.fail(o.item(path, "", "is not a field that is known here: correct its name, or remove it"))
			continue
		}
		o.report.add(o.item(at, NoEqual, advice))
	}
}

// advise is the longest beginning of a path that has advice; "" when none has.
func advise(path string, known map[string]string) (at, advice string) {
	segments := split(path)
	for n := len(segments); n > 0; n-- {
		at := strings.Join(segments[:n], ".")
		general := index.ReplaceAllString(at, "[]")
		if advice, found := known[general]; found {
			return at, advice
		}
		if advice, found := known[strings.TrimSuffix(general, "[]")]; found { // the whole list
			return at[:strings.LastIndex(at, "[")], advice
		}
	}
	return "", ""
}

func (o *Object) item(path string, kind Kind, words string) Item {
	return Item{File: o.File, Object: o.ID(), Field: path, Kind: kind, Text: words}
}

// unread are the paths of the leaves that were not read.
func (o *Object) unread(path string, value any) (list []string) {
	if o.read[path] || slices.Contains(ignored, path) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = append(list, o.unread(join(path, key), v[key])...)
		}
		if len(v) > 0 {
			return list
		}
	case []any:
		for i := range v {
			list = append(list, o.unread(fmt.Sprintf("%s[%d]", path, i), v[i])...)
		}
		if len(v) > 0 {
			return list
		}
	}
	if path == "" {
		return nil
	}
	return append(list, path)
}

// escaped is a dot within a name, as kubectl takes it in a path.
const escaped = `\.`

// join joins names to a path.
func join(path, name string) string {
	name = strings.ReplaceAll(name, ".", escaped)
	if path == "" {
		return name
	}
	return path + "." + name
}

// split is what join joined.
func split(path string) []string {
	const dot = "\x00"
	segments := strings.Split(strings.ReplaceAll(path, escaped, dot), ".")
	for i := range segments {
		segments[i] = strings.ReplaceAll(segments[i], dot, escaped)
	}
	return segments
}
