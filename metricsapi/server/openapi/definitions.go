// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions are those of every type that occurs in a request or an answer.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := apiextensions.GetOpenAPIDefinitions(ref)
	for name, own := range GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) }) {
		for i := range own.Dependencies {
			own.Dependencies[i] = modelName(own.Dependencies[i])
		}
		all[name] = own
	}
	all[corev1.ObjectReference{}.OpenAPIModelName()] = objectReference()
	return all
}

// modelName is the name under which a library defines a type that the generated code
// names by its Go package: the generator does not read the marks of packages that it
// does not generate for.
func modelName(name string) string {
	if strings.HasPrefix(name, "k8s.io/") {
		return util.ToRESTFriendlyName(name)
	}
	return name
}

// objectReference describes a type of the core group by its own documentation. The
// definitions of that whole group would be some hundred times as long as the ones that
// are needed.
func objectReference() common.OpenAPIDefinition {
	doc := corev1.ObjectReference{}.SwaggerDoc()
	properties := map[string]spec.Schema{}
	for field := range reflect.TypeFor[corev1.ObjectReference]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		properties[name] = spec.Schema{SchemaProps: spec.SchemaProps{Description: doc[name], Type: []string{"string"}}}
	}
	return common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps: spec.SchemaProps{Description: doc[""], Type: []string{"object"}, Properties: properties},
	}}
}
