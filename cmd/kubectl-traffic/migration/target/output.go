// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// Output are the objects that are written, in their order.
type Output struct{ written []written }

type written struct {
	from    string
	content map[string]any
}

// Add adds an object that was made from another one. A second one of the same kind and
// name is left out.
func (o *Output) Add(from *source.Object, object runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	prune(content)
	w := written{from: from.ID() + " in " + from.File, content: content}
	if !slices.ContainsFunc(o.written, func(other written) bool { return id(other.content) == id(content) }) {
		o.written = append(o.written, w)
	}
	return nil
}

func id(content map[string]any) string {
	u := unstructured.Unstructured{Object: content}
	return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
}

// prune removes what types render without having been given it.
func prune(content map[string]any) {
	delete(content, "status")
	for key, value := range content {
		switch v := value.(type) {
		case map[string]any:
			prune(v)
			delete(v, "creationTimestamp")
			if len(v) == 0 && (key == "metadata" || key == "resources" || key == "strategy") {
				delete(content, key)
			}
		case []any:
			for _, item := range v {
				if m, is := item.(map[string]any); is {
					prune(m)
				}
			}
		}
	}
}

// order is that in which objects have to be applied.
var order = []string{"ClusterAnalysisTemplate", "AnalysisTemplate", "HTTPRouteGroup", "Deployment", "Service", "HTTPRoute", "VirtualService", "Rollout"}

// File is an object as YAML, with a comment that says what it was made from.
type File struct{ Name, Text string }

// Files are all objects, in the order in which they have to be applied.
func (o *Output) Files() ([]File, error) {
	slices.SortStableFunc(o.written, func(a, b written) int { return rank(a) - rank(b) })
	files := make([]File, 0, len(o.written))
	for _, w := range o.written {
		text, err := yaml.Marshal(w.content)
		if err != nil {
			return nil, err
		}
		u := unstructured.Unstructured{Object: w.content}
		name := strings.ToLower(u.GetKind()) + "-" + u.GetName() + ".yaml"
		files = append(files, File{name, fmt.Sprintf("# From %s.\n%s", w.from, text)})
	}
	return files, nil
}

func rank(w written) int {
	kind, _ := w.content["kind"].(string)
	return slices.Index(order, kind)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Name makes a name of a text: small letters, digits and dashes, at most so many of them.
func Name(text string, longest int) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

// Empty is whether nothing is written.
func (o *Output) Empty() bool { return len(o.written) == 0 }
