// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"encoding/json"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

var converters = sync.OnceValues(func() ([]managedfields.TypeConverter, error) {
	split, err := converterOf("../../config/crd/split.smi-spec.io_trafficsplits.yaml", splitv1.GroupVersion.WithKind("TrafficSplit"))
	if err != nil {
		return nil, err
	}
	group, err := converterOf("../../config/crd/specs.smi-spec.io_httproutegroups.yaml", specsv1.GroupVersion.WithKind("HTTPRouteGroup"))
	return []managedfields.TypeConverter{split, group, applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)}, err
})

// converterOf makes the fake API server merge the objects of a kind as a real one
// does, by the schema of its definition: entry by entry.
func converterOf(definition string, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
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
	root, stored := &spec.Schema{}, crd.Spec.Versions[len(crd.Spec.Versions)-1]
	if err := json.Unmarshal(stored.Schema.OpenAPIV3Schema, root); err != nil {
		return nil, err
	}
	metadata := root.Properties["metadata"]
	metadata.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	root.Properties["metadata"] = metadata
	root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
	}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.Kind: root}, false)
}
