// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Parse reads the objects of a manifest: YAML documents, and lists of objects in
// them. Errors name the document by its place, since its text may hold secrets.
func Parse(manifest string) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest + "\n")))
	var objects []*unstructured.Unstructured
	for place := 1; ; place++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest can't be read", place)
		}
		found, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest is %w", place, err)
		}
		objects = append(objects, found...)
	}
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, errors.New("no YAML")
	}
	if string(raw) == "null" {
		return nil, nil
	}
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, errors.New("no map")
	}
	return flatten(&unstructured.Unstructured{Object: content})
}

// flatten takes lists apart, as Helm does.
func flatten(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if object.IsList() {
		var objects []*unstructured.Unstructured
		err := object.EachListItem(func(item runtime.Object) error {
			found, err := flatten(item.(*unstructured.Unstructured))
			objects = append(objects, found...)
			return err
		})
		if err != nil {
			return nil, errors.New("a list of things that are not objects")
		}
		return objects, nil
	}
	// Accessors of unstructured objects answer with nothing where they find another type.
	if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
		return nil, errors.New("not an object: it lacks an apiVersion, a kind or a name")
	}
	return []*unstructured.Unstructured{object}, nil
}

// key tells objects apart. The version of an API does not: one object is served in
// several.
type key struct{ group, kind, namespace, name string }

func (k key) String() string { return k.kind + "/" + k.name }

func compareKeys(a, b key) int {
	return cmp.Or(
		strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name),
		strings.Compare(a.group, b.group), strings.Compare(a.namespace, b.namespace),
	)
}

// index keys objects; without a namespace they are in the release's. For objects of
// the whole cluster that is untrue and does no harm.
func index(objects []*unstructured.Unstructured, namespace string) map[key]*unstructured.Unstructured {
	all := make(map[key]*unstructured.Unstructured, len(objects))
	for _, o := range objects {
		all[keyOf(o, namespace)] = o
	}
	return all
}

func keyOf(o *unstructured.Unstructured, namespace string) key {
	return key{
		group: o.GroupVersionKind().Group, kind: o.GetKind(),
		namespace: cmp.Or(o.GetNamespace(), namespace), name: o.GetName(),
	}
}

// keys are those of several indexes, sorted.
func keys(indexes ...map[key]*unstructured.Unstructured) []key {
	var all []key
	for _, i := range indexes {
		for k := range i {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, compareKeys)
	return slices.Compact(all)
}

// Missing are the objects of one manifest that another lacks: "Kind/name", sorted.
func Missing(of, from []*unstructured.Unstructured, namespace string) []string {
	there := index(from, namespace)
	var missing []string
	for _, k := range keys(index(of, namespace)) {
		if _, found := there[k]; !found {
			missing = append(missing, k.String())
		}
	}
	return missing
}

func same(a, b *unstructured.Unstructured) bool {
	return apiequality.Semantic.DeepEqual(a.Object, b.Object)
}

// as reads an object as its type. Its errors are not for showing: they quote values.
func as[T any](o *unstructured.Unstructured) (*T, bool) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil, false
	}
	return typed, true
}
