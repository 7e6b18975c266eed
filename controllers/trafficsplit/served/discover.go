// SPDX-License-Identifier: Apache-2.0

package served

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// ResourceLister is the part of a discovery client that is asked.
type ResourceLister interface {
	// ServerResourcesForGroupVersion lists what is served, or says that nothing is.
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Discover asks in which version the cluster serves TrafficSplits, and with what. A
// cluster that does not have them yet will get those of the chart.
func Discover(cluster ResourceLister) (traffic.Served, error) {
	for _, version := range splitv1.Versions {
		gv := schema.GroupVersion{Group: splitv1.GroupVersion.Group, Version: version}
		list, err := cluster.ServerResourcesForGroupVersion(gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return traffic.Served{}, fmt.Errorf("ask whether the cluster serves %s: %w", gv, err)
		}
		has := func(resource string) bool {
			return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
		}
		if has("trafficsplits") {
			return traffic.Served{
				Version: version, NoStatus: !has("trafficsplits/status"),
				NoMatches: version == "v1alpha1" || version == "v1alpha2",
			}, nil
		}
	}
	return traffic.Served{Version: splitv1.GroupVersion.Version}, nil
}
