// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"net/netip"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// record is what is kept of an object.
type record struct {
	labels labelSet
	owner  owner
}

// owner is the controller of an object; zero when it has none of a kind that counts.
type owner struct {
	kind observe.Kind
	name string
}

// label is one label. Most labels of a cluster are the same on many objects.
type label struct{ key, value unique.Handle[string] }

// labelSet are the labels of an object, in the order of their keys. It implements
// labels.Labels.
type labelSet []label

func makeLabels(from map[string]string) labelSet {
	if len(from) == 0 {
		return nil
	}
	set := make(labelSet, 0, len(from))
	for key, value := range from {
		set = append(set, label{unique.Make(key), unique.Make(value)})
	}
	slices.SortFunc(set, func(a, b label) int { return strings.Compare(a.key.Value(), b.key.Value()) })
	return set
}

// Lookup returns the value of a label and whether there is one.
func (s labelSet) Lookup(key string) (string, bool) {
	for _, l := range s {
		if l.key.Value() == key {
			return l.value.Value(), true
		}
	}
	return "", false
}

// Has is whether there is a label.
func (s labelSet) Has(key string) bool {
	_, has := s.Lookup(key)
	return has
}

// Get returns the value of a label; "" without one.
func (s labelSet) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}

// makeRecord keeps what counts of an object's metadata.
func makeRecord(m *metav1.ObjectMeta) record {
	return record{labels: makeLabels(m.Labels), owner: controllerOf(m)}
}

// controllerOf is the object that makes another. Kinds of other groups, or that have no
// TrafficMetrics, are none.
func controllerOf(m *metav1.ObjectMeta) owner {
	ref := metav1.GetControllerOfNoCopy(m)
	if ref == nil {
		return owner{}
	}
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	for _, kind := range workloads {
		if group == schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).GroupKind() {
			return owner{kind, ref.Name}
		}
	}
	return owner{}
}

// workloads are the kinds that make pods.
var workloads = []observe.Kind{
	observe.ReplicationControllers, observe.DaemonSets, observe.Deployments, observe.ReplicaSets, observe.StatefulSets, observe.Jobs,
}

// podRecord is what is kept of a pod.
type podRecord struct {
	record
	// name is that of the pod, to compare pods that claim the same address.
	name types.NamespacedName
	// node that it runs on.
	node unique.Handle[string]
	// addresses by which its requests are known; none when it is over, or has those of
	// its node.
	addresses []netip.Addr
	// leaving is whether it is being deleted.
	leaving bool
}

func makePod(p *corev1.Pod) *podRecord {
	r := &podRecord{
		record:  makeRecord(&p.ObjectMeta),
		name:    types.NamespacedName{Namespace: unique.Make(p.Namespace).Value(), Name: p.Name},
		node:    unique.Make(p.Spec.NodeName),
		leaving: p.DeletionTimestamp != nil,
	}
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if over || p.Spec.HostNetwork {
		return r
	}
	for _, ip := range p.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			r.addresses = append(r.addresses, address.Unmap())
		}
	}
	return r
}

// trim leaves of a pod what makePod reads. The others of a list are thrown away while it
// comes in, so that a list of all pods is never in memory as it is.
func trim(p *corev1.Pod) *corev1.Pod {
	m := metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, DeletionTimestamp: p.DeletionTimestamp,
		Labels: p.Labels, Annotations: bookmark(p.Annotations), OwnerReferences: p.OwnerReferences,
	}
	return &corev1.Pod{
		ObjectMeta: m, Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIPs: p.Status.PodIPs},
	}
}

// bookmark is the annotation that ends the first part of a watch.
func bookmark(annotations map[string]string) map[string]string {
	if value, is := annotations[metav1.InitialEventsAnnotationKey]; is {
		return map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	return nil
}
