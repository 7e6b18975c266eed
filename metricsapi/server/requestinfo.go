// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// edges is the sub-resource of every resource.
const edges = "edges"

// requestInfo reads what a request is about from its path, as Kubernetes does but for
// one form: /namespaces/NAME/edges are the edges of a namespace. To Kubernetes these
// would be all objects of a resource called edges in the namespace, and users who
// may read namespaces/edges would need another right.
type requestInfo struct{ request.RequestInfoResolver }

// NewRequestInfo reads a request.
func (r requestInfo) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	info, err := r.RequestInfoResolver.NewRequestInfo(req)
	if err != nil || !info.IsResourceRequest || info.Resource != edges || info.Namespace == "" || len(info.Parts) != 1 {
		return info, err
	}
	if info.Verb == "list" {
		info.Verb = "get"
	}
	info.Resource, info.Subresource, info.Name = observe.Namespaces.Resource, edges, info.Namespace
	info.Parts = []string{info.Resource, info.Name, edges}
	info.FieldSelector, info.LabelSelector = "", "" // only lists can be allowed by them
	return info, nil
}
