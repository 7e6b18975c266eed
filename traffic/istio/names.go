// SPDX-License-Identifier: Apache-2.0

package istio

import "k8s.io/apimachinery/pkg/runtime/schema"

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "istio"

// annotationOriginal on a VirtualService holds the Record of its routes.
const annotationOriginal = "serin.dev/original-routes"

// fieldManager owns what the router writes.
const fieldManager = "serin-trafficsplit"

// Group of Istio's kinds, and the kinds that the router reads and writes.
const (
	group              = "networking.istio.io"
	kindVirtualService = "VirtualService"
	kindRule           = "DestinationRule"
)

// versions of the group, the best first. They have the same form.
var versions = []string{"v1", "v1beta1", "v1alpha3"}

// kinds are the two kinds in the version that the cluster serves. The zero value is
// a cluster without Istio.
type kinds struct {
	version string
}

func (k kinds) served() bool { return k.version != "" }

func (k kinds) routes() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: k.version, Kind: kindVirtualService}
}

func (k kinds) rules() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: k.version, Kind: kindRule}
}
