// SPDX-License-Identifier: Apache-2.0

package crdfile

import (
	"bytes"
	"os"

	"go.yaml.in/yaml/v3"
)

// Rewrite changes a file.
func Rewrite(name string, change func(document *yaml.Node) error) error {
	in, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	out, err := Change(in, change)
	if err != nil {
		return err
	}
	return os.WriteFile(name, out, 0o644) //nolint:gosec // as above; everybody reads what Git holds
}

// Change makes the text of a file of the one that it has.
func Change(in []byte, change func(document *yaml.Node) error) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(in, &document); err != nil {
		return nil, err
	}
	if err := change(&document); err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("---\n")
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
