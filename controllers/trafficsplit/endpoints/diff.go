// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/serin-dev/serin/traffic"
)

// ManagedBy is who manages these EndpointSlices. The controller of Kubernetes leaves them alone.
const ManagedBy = "proxies.serin.dev"

// perSlice is how many endpoints an EndpointSlice holds, as by default in Kubernetes.
const perSlice = 100

// Changes are writes of EndpointSlices. Updates and deletions are of the resourceVersion
// that was observed.
type Changes struct {
	Create, Update, Delete []*discoveryv1.EndpointSlice
}

// None is true when there is nothing to write.
func (c Changes) None() bool { return len(c.Create)+len(c.Update)+len(c.Delete) == 0 }

// Diff is what has to be written so that the EndpointSlices of a Service have the pods of a
// split's proxies. existing are those that Serin manages for both; none of the arguments is
// changed. A pod whose node is not known is left out, and reported as an error beside the
// changes.
func Diff(service *corev1.Service, split string, pods []*corev1.Pod, existing []*discoveryv1.EndpointSlice, nodes corelisters.NodeLister) (Changes, error) {
	labelled := service.DeepCopy()
	labelled.Labels = maps.Clone(service.Labels)
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	labelled.Labels[traffic.LabelProxy] = split
	own := make([]*discoveryv1.EndpointSlice, 0, len(existing)) // the library sorts their ports
	for _, s := range existing {
		own = append(own, s.DeepCopy())
	}
	r := &recorder{service: service.Name, existing: own}
	reconciler := endpointslice.NewReconciler(clientset{recorder: r}, nodes, perSlice, endpointsliceutil.NewEndpointSliceTracker(), nil, nil, ManagedBy,
		endpointslice.WithPreferSameTrafficDistributionEnabled(true))
	err := reconciler.Reconcile(klog.Background(), labelled, pods, slices.Clone(own), time.Time{})
	return r.changes, err
}
