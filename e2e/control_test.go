// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controlName is the name of the Service that Serin has nothing to do with.
const controlName = "control"

// startControl gives the control one of its two pods as its endpoint, and the other one
// whenever the endpoints of one of the Services change, until the attempt ends. kube-proxy
// exchanges both Services' rules in one go then, so that what that breaks is broken there too.
func (s *site) startControl(services []string) {
	s.t.Helper()
	pods := &corev1.PodList{}
	if err := s.api.List(s.t.Context(), pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": controlName}); err != nil {
		s.t.Fatal(err)
	}
	if len(pods.Items) != 2 {
		s.t.Fatalf("the control has %d pods, and needs 2", len(pods.Items))
	}
	turnTo := s.leadControl(pods.Items)
	changed := s.watchEndpoints(services)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for turn := 1; ; turn++ {
			select {
			case <-s.t.Context().Done():
				return
			case <-changed:
			}
			turnTo(turn % 2)
		}
	}()
	s.t.Cleanup(func() { <-done })
}

// leadControl has the first of two pods answer for the control, and returns what has another do
// so.
func (s *site) leadControl(pods []corev1.Pod) (turnTo func(turn int)) {
	s.t.Helper()
	if s.controlSelects {
		s.labelControl(pods)
		s.selectControl(0)
		return s.selectControl
	}
	endpoints := s.controlSlice(pods[0])
	if err := s.api.Create(s.t.Context(), endpoints); err != nil {
		s.t.Fatal(err)
	}
	return func(turn int) { s.exchange(endpoints, pods[turn]) }
}

// exchange gives the control another pod.
func (s *site) exchange(endpoints *discoveryv1.EndpointSlice, pod corev1.Pod) {
	endpoints.Endpoints = s.controlSlice(pod).Endpoints
	if err := s.api.Update(s.t.Context(), endpoints); err != nil && s.t.Context().Err() == nil {
		s.t.Errorf("change the endpoints of the control: %v", err)
	}
}

// controlSlice names a pod as the endpoint of the control.
func (s *site) controlSlice(pod corev1.Pod) *discoveryv1.EndpointSlice {
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: controlName, Labels: map[string]string{discoveryv1.LabelServiceName: controlName}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("http"), Port: new(int32(8080)), Protocol: &tcp},
			{Name: new("echo"), Port: new(int32(8053)), Protocol: &udp},
		},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
	}
}

// watchEndpoints tells of each change of the Services' endpoints.
func (s *site) watchEndpoints(services []string) <-chan struct{} {
	s.t.Helper()
	changed := make(chan struct{}, 1)
	notify := func(object any) {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok && slices.Contains(services, slice.Labels[discoveryv1.LabelServiceName]) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithNamespace(s.namespace))
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	handler := cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify}
	if _, err := informer.AddEventHandler(handler); err != nil {
		s.t.Fatal(err)
	}
	ctx := context.WithoutCancel(s.t.Context())
	factory.Start(s.t.Context().Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		s.t.Fatal("the endpoints can't be watched")
	}
	return changed
}
