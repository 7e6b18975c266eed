// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "istio"

// annotationOriginal on a VirtualService holds the Record of its routes.
const annotationOriginal = "serin.dev/original-routes"

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

// servedKinds finds the best version in which the cluster has both kinds.
func servedKinds(mapper meta.RESTMapper) (kinds, error) {
	for _, version := range versions {
		found := 0
		for _, kind := range []string{kindVirtualService, kindRule} {
			_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)
			if err == nil {
				found++
			} else if !meta.IsNoMatchError(err) {
				return kinds{}, fmt.Errorf("ask whether the cluster serves %s: %w", kind, err)
			}
		}
		if found == 2 {
			return kinds{version: version}, nil
		}
	}
	return kinds{}, nil
}
