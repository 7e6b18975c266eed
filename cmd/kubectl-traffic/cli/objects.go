// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Stdin is the name by which a file flag asks for the standard input.
const Stdin = "-"

// yamlBuffer is how much is read to tell YAML from JSON.
const yamlBuffer = 4096

// Manifests are the objects of a file, and the cluster and the namespace that they are for.
type Manifests struct {
	Objects   []*unstructured.Unstructured
	API       client.Client
	Namespace string
}

// Manifests reads the file of a flag -f, which has what is said.
func (c *Cluster) Manifests(cmd *cobra.Command, file, what string) (m Manifests, err error) {
	if file == "" {
		return m, UsageErrorf("-f is missing: name the file with %s", what)
	}
	if m.Objects, err = ReadObjects(cmd, file); err != nil {
		return m, err
	}
	m.API, m.Namespace, err = c.Connect()
	return m, err
}

// ReadObjects reads all documents of a file, or of the standard input.
func ReadObjects(cmd *cobra.Command, file string) ([]*unstructured.Unstructured, error) {
	if file == Stdin {
		return decodeObjects(cmd.InOrStdin(), file)
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(in, file)
	return objects, errors.Join(err, in.Close())
}

func decodeObjects(in io.Reader, file string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(in, yamlBuffer)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF) && len(objects) == 0:
			return nil, fmt.Errorf("%s: has no object", file)
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case len(o.Object) == 0:
			continue // nothing between two separators
		case o.IsList():
			err := o.EachListItem(func(item runtime.Object) error {
				objects = append(objects, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // what it makes
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			continue
		case o.GetKind() == "" || o.GetName() == "":
			return nil, fmt.Errorf("%s: an object has no kind or no metadata.name", file)
		}
		objects = append(objects, o)
	}
}
