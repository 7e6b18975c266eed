// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/serin-dev/serin/config/crdfile"
)

func main() {
	for _, name := range os.Args[1:] {
		err := crdfile.Rewrite(name, func(document *yaml.Node) error {
			join(document)
			return nil
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "crdlines: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
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
