// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/serin-dev/serin/e2e/images"
)

func TestTheManifestRunsTheImageThatIsBuilt(t *testing.T) {
	var deployment appsv1.Deployment
	decodeOnly(t, "Deployment", &deployment)
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != images.Traefik.Reference {
		t.Errorf("the manifest runs %s, want %s", got, images.Traefik.Reference)
	}
}

func TestTraefikChangesNothingButStatuses(t *testing.T) {
	var role rbacv1.ClusterRole
	decodeOnly(t, "ClusterRole", &role)
	for _, rule := range role.Rules {
		onlyStatus := !slices.ContainsFunc(rule.Resources, func(name string) bool { return !strings.HasSuffix(name, "/status") })
		for _, verb := range rule.Verbs {
			reads := slices.Contains([]string{"get", "list", "watch"}, verb)
			if !reads && (verb != "update" || !onlyStatus) {
				t.Errorf("Traefik may %s %v", verb, rule.Resources)
			}
		}
	}
}

// TestTheDefinitionsAreThoseThatTraefikWatches fails when a new version of the
// Gateway API moves a file or no longer serves what Traefik asks for: it would wait
// for ever.
func TestTheDefinitionsAreThoseThatTraefikWatches(t *testing.T) {
	watched := map[string]string{
		"GatewayClass": "v1", "Gateway": "v1", "HTTPRoute": "v1", "GRPCRoute": "v1", "ReferenceGrant": "v1beta1",
		"BackendTLSPolicy": "v1", "TCPRoute": "v1alpha2", "TLSRoute": "v1alpha2",
	}
	files, err := definitionFiles(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, definition := range decodeAll(t, content) {
			kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
			for _, version := range servedVersions(t, definition) {
				if version == watched[kind] {
					served[kind] = version
				}
			}
		}
	}
	if diff := cmp.Diff(watched, served); diff != "" {
		t.Errorf("what Traefik watches, and what of it is served (-want +got):\n%s", diff)
	}
}

func servedVersions(t *testing.T, definition unstructured.Unstructured) []string {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, version := range versions {
		fields, ok := version.(map[string]any)
		if !ok {
			t.Fatalf("a version of %s is no object", definition.GetName())
		}
		if name, ok := fields["name"].(string); ok && fields["served"] == true {
			served = append(served, name)
		}
	}
	return served
}

// decodeOnly decodes the manifest's only object of a kind. Unknown fields are errors.
func decodeOnly(t *testing.T, kind string, into any) {
	t.Helper()
	found := 0
	for _, object := range decodeAll(t, manifest) {
		if object.GetKind() != kind {
			continue
		}
		found++
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Fatalf("the manifest has %d objects of kind %s, want 1", found, kind)
	}
}

func decodeAll(t *testing.T, content []byte) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		var object unstructured.Unstructured
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}
