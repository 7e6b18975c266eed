// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/serin-dev/serin/config/crdfile"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crdversions FILE VERSION...")
		os.Exit(2)
	}
	if err := crdfile.Rewrite(os.Args[1], add(os.Args[2:])); err != nil {
		fmt.Fprintf(os.Stderr, "crdversions: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// add puts the versions before the one that the CRD has, which stays the stored one.
func add(versions []string) func(*yaml.Node) error {
	return func(document *yaml.Node) error {
		list := field(document, "spec", "versions")
		if list == nil || len(list.Content) != 1 {
			return errors.New("spec.versions: has to hold one version")
		}
		stored := list.Content[0]
		var all []*yaml.Node
		for _, name := range versions {
			older, err := makeOlder(stored, name)
			if err != nil {
				return err
			}
			all = append(all, older)
		}
		list.Content = slices.Concat(all, list.Content)
		return nil
	}
}

// makeOlder is a version that is served and not stored.
func makeOlder(stored *yaml.Node, name string) (*yaml.Node, error) {
	older := clone(stored)
	schema := field(older, "schema", "openAPIV3Schema")
	weight := field(schema, "properties", "spec", "properties", "backends", "items", "properties", "weight")
	if weight == nil {
		return nil, errors.New("there is no spec.backends.weight")
	}
	undescribe(schema)
	weight.Content = append(weight.Content, scalar("default"), scalar("0"))
	schema.Content = append(schema.Content, scalar("description"), scalar("TrafficSplit of an older version. kubectl explain describes the fields of the stored one."))
	field(older, "name").Value = name
	field(older, "storage").Value = "false"
	return older, nil
}

// field is the value at a path of keys; nil when there is none.
func field(n *yaml.Node, path ...string) *yaml.Node {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	for _, key := range path {
		at := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
		if n.Kind != yaml.MappingNode || at < 0 || at%2 == 1 {
			return nil
		}
		n = n.Content[at+1]
	}
	return n
}

func scalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func clone(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = nil
	for _, child := range n.Content {
		out.Content = append(out.Content, clone(child))
	}
	return &out
}

// undescribe removes descriptions; a property of that name is a mapping, and stays.
func undescribe(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == "description" && n.Content[i+1].Kind == yaml.ScalarNode {
				n.Content = slices.Delete(n.Content, i, i+2)
			}
		}
	}
	for _, child := range n.Content {
		undescribe(child)
	}
}
