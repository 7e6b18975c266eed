// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := rewrite(name); err != nil {
			fmt.Fprintf(os.Stderr, "crdlines: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func rewrite(name string) error {
	in, err := os.ReadFile(name) //nolint:gosec // the user names the files
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(in, &document); err != nil {
		return err
	}
	join(&document)
	out := bytes.NewBufferString("---\n")
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o644) //nolint:gosec // as above; everybody reads what Git holds
}

// join goes through the schema; a property that is called description is a mapping,
// and left alone.
func join(n *yaml.Node) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "description" && child.Kind == yaml.ScalarNode {
			child.Value, child.Style = joined(child.Value), 0
			continue
		}
		join(child)
	}
}

// joined keeps empty lines and lists.
func joined(description string) string {
	var out strings.Builder
	last := ""
	for i, line := range strings.Split(description, "\n") {
		separator := " "
		if line == "" || last == "" || strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ") {
			separator = "\n"
		}
		if i > 0 {
			out.WriteString(separator)
		}
		out.WriteString(line)
		last = line
	}
	return out.String()
}
