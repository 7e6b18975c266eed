// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"encoding/json"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

var converters = sync.OnceValues(func() ([]managedfields.TypeConverter, error) {
	split, err := splitConverter("../../config/crd/split.smi-spec.io_trafficsplits.yaml")
	return []managedfields.TypeConverter{split, applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)}, err
})

// splitConverter makes the fake API server merge the status of TrafficSplits as a
// real one does, by the schema of their definition: entry by entry.
func splitConverter(definition string) (managedfields.TypeConverter, error) {
	text, err := os.ReadFile(definition)
	if err != nil {
		return nil, err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema); err != nil {
		return nil, err
	}
	metadata := schema.Properties["metadata"]
	metadata.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	schema.Properties["metadata"] = metadata
	schema.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": splitv1.GroupVersion.Group, "version": splitv1.GroupVersion.Version, "kind": "TrafficSplit",
	}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"TrafficSplit": schema}, false)
}
