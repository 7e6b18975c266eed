// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// clientset has of a client only what the library calls.
type clientset struct {
	kubernetes.Interface
	recorder *recorder
}

func (c clientset) DiscoveryV1() discoveryclient.DiscoveryV1Interface {
	return discovery{recorder: c.recorder}
}

type discovery struct {
	discoveryclient.DiscoveryV1Interface
	recorder *recorder
}

func (d discovery) EndpointSlices(string) discoveryclient.EndpointSliceInterface { return d.recorder }

// recorder keeps the writes of the library instead of carrying them out.
type recorder struct {
	discoveryclient.EndpointSliceInterface
	service  string
	existing []*discoveryv1.EndpointSlice
	changes  Changes
}

// Create implements discoveryclient.EndpointSliceInterface. The name is not drawn: of two
// replicas that create the same slice, one has to fail.
func (r *recorder) Create(_ context.Context, slice *discoveryv1.EndpointSlice, _ metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	slice.GenerateName, slice.Name = "", r.free(slice.AddressType)
	slice.OwnerReferences = unblocking(slice.OwnerReferences)
	r.changes.Create = append(r.changes.Create, slice)
	return slice, nil
}

// free is the first name that no slice has.
func (r *recorder) free(of discoveryv1.AddressType) string {
	first := r.service + "-proxies-" + strings.ToLower(string(of))
	named := func(name string) func(*discoveryv1.EndpointSlice) bool {
		return func(s *discoveryv1.EndpointSlice) bool { return s.Name == name }
	}
	name := first
	for n := 2; slices.ContainsFunc(r.existing, named(name)) || slices.ContainsFunc(r.changes.Create, named(name)); n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	return name
}

// Update implements discoveryclient.EndpointSliceInterface. The library also updates slices
// that it would otherwise delete to what it would create, which has no resourceVersion.
func (r *recorder) Update(_ context.Context, slice *discoveryv1.EndpointSlice, _ metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	before, err := r.observed(slice.Name)
	if err != nil {
		return nil, err
	}
	after := before.DeepCopy()
	after.Labels, after.OwnerReferences = slice.Labels, unblocking(slice.OwnerReferences)
	after.Ports, after.Endpoints = slice.Ports, slice.Endpoints
	r.changes.Update = append(r.changes.Update, after)
	return after, nil
}

// Delete implements discoveryclient.EndpointSliceInterface.
func (r *recorder) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	slice, err := r.observed(name)
	if err != nil {
		return err
	}
	r.changes.Delete = append(r.changes.Delete, slice)
	return nil
}

func (r *recorder) observed(name string) (*discoveryv1.EndpointSlice, error) {
	i := slices.IndexFunc(r.existing, func(s *discoveryv1.EndpointSlice) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("EndpointSlice %q was not observed", name)
	}
	return r.existing[i], nil
}

// unblocking are references that the manager may set where owners are protected: to block
// the deletion of a Service takes the right to change its finalizers.
func unblocking(references []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(references)
	for i := range out {
		out[i].BlockOwnerDeletion = nil
	}
	return out
}
