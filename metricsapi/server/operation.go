// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// operation names an operation for OpenAPI. The library names it after its kind, and
// here all resources have the same: the resource is added.
func operation(r *restful.Route) (name string, tags []string, err error) {
	name, tags, err = apiopenapi.GetOperationIDAndTags(r)
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	for _, part := range slices.Backward(parts) {
		for _, kind := range observe.Kinds {
			if part == kind.Resource {
				return name + "Of" + kind.Kind, tags, err
			}
		}
	}
	return name, tags, err
}
