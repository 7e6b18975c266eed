// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// Store answers questions about the objects that it was given. The zero value is not
// ready; use NewStore.
type Store struct {
	mu sync.RWMutex
	// objects of every kind but pods.
	objects map[observe.Kind]map[types.NamespacedName]record
	pods    map[types.NamespacedName]*podRecord
	// byAddress has the pod that has an address.
	byAddress map[netip.Addr]*podRecord
	// slices are the EndpointSlices, and endpoints what they say, by pod.
	slices    map[types.NamespacedName]slice
	endpoints map[types.NamespacedName][]endpoint
	splits    map[types.NamespacedName]observe.Split
}

var _ observe.Inventory = (*Store)(nil)

// slice is what is kept of an EndpointSlice.
type slice struct {
	service string
	pods    []string
}

// endpoint is the Service that a pod belongs to, by one EndpointSlice.
type endpoint struct{ service, slice string }

// NewStore makes an empty Store.
func NewStore() *Store {
	s := &Store{
		objects: map[observe.Kind]map[types.NamespacedName]record{},
		pods:    map[types.NamespacedName]*podRecord{}, byAddress: map[netip.Addr]*podRecord{},
		slices: map[types.NamespacedName]slice{}, endpoints: map[types.NamespacedName][]endpoint{},
		splits: map[types.NamespacedName]observe.Split{},
	}
	for _, kind := range observe.Kinds {
		s.objects[kind] = map[types.NamespacedName]record{}
	}
	return s
}

// SetObject adds or replaces an object of a kind other than pods, by its metadata.
func (s *Store) SetObject(kind observe.Kind, m *metav1.ObjectMeta) {
	r := makeRecord(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[kind][nameOf(m)] = r
}

// DeleteObject removes an object of a kind other than pods.
func (s *Store) DeleteObject(kind observe.Kind, name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects[kind], name)
	if kind == observe.TrafficSplits {
		delete(s.splits, name)
	}
}

// SetSplit adds or replaces a TrafficSplit. A backend has the live weight, and the
// requested one where no live weight is reported.
func (s *Store) SetSplit(t *splitv1.TrafficSplit) {
	r, split := makeRecord(&t.ObjectMeta), observe.Split{}
	split.Apex, _, _ = strings.Cut(t.Spec.Service, ".") // it may be a fully qualified name
	for _, b := range t.Spec.Backends {
		weight := b.Weight
		for _, live := range t.Status.Backends {
			if live.Service == b.Service {
				weight = live.Weight
			}
		}
		split.Backends = append(split.Backends, metricsv1.Backend{Apex: split.Apex, Name: b.Service, Weight: weight})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[observe.TrafficSplits][nameOf(&t.ObjectMeta)] = r
	s.splits[nameOf(&t.ObjectMeta)] = split
}

// SetPod adds or replaces a pod.
func (s *Store) SetPod(p *corev1.Pod) {
	r := makePod(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetAddresses(s.pods[r.name])
	s.pods[r.name] = r
	for _, address := range r.addresses {
		// An address is given away while the pod that had it is still leaving.
		if holder := s.byAddress[address]; holder == nil || holder.leaving || !r.leaving {
			s.byAddress[address] = r
		}
	}
}

// DeletePod removes a pod.
func (s *Store) DeletePod(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetAddresses(s.pods[name])
	delete(s.pods, name)
}

// forgetAddresses removes a pod, which may be nil, from the index.
func (s *Store) forgetAddresses(r *podRecord) {
	if r == nil {
		return
	}
	for _, address := range r.addresses {
		if s.byAddress[address] == r {
			delete(s.byAddress, address)
		}
	}
}

// SetEndpoints adds or replaces an EndpointSlice.
func (s *Store) SetEndpoints(e *discoveryv1.EndpointSlice) {
	made := slice{service: e.Labels[discoveryv1.LabelServiceName]}
	if made.service != "" {
		for _, one := range e.Endpoints {
			if t := one.TargetRef; t != nil && t.Kind == observe.Pods.Kind && !slices.Contains(made.pods, t.Name) {
				made.pods = append(made.pods, t.Name)
			}
		}
	}
	name := nameOf(&e.ObjectMeta)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetEndpoints(name)
	s.slices[name] = made
	for _, pod := range made.pods {
		key := types.NamespacedName{Namespace: name.Namespace, Name: pod}
		s.endpoints[key] = append(s.endpoints[key], endpoint{made.service, name.Name})
	}
}

// DeleteEndpoints removes an EndpointSlice.
func (s *Store) DeleteEndpoints(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetEndpoints(name)
	delete(s.slices, name)
}

func (s *Store) forgetEndpoints(name types.NamespacedName) {
	for _, pod := range s.slices[name].pods {
		key := types.NamespacedName{Namespace: name.Namespace, Name: pod}
		rest := slices.DeleteFunc(s.endpoints[key], func(e endpoint) bool { return e.slice == name.Name })
		if len(rest) == 0 {
			delete(s.endpoints, key)
			continue
		}
		s.endpoints[key] = rest
	}
}

// Names implements observe.Inventory.
func (s *Store) Names(kind observe.Kind, namespace string, selector labels.Selector) []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []types.NamespacedName
	consider := func(name types.NamespacedName, l labels.Labels) {
		if (namespace == "" || name.Namespace == namespace) && selector.Matches(l) {
			found = append(found, name)
		}
	}
	if kind == observe.Pods {
		for name, p := range s.pods {
			consider(name, p.labels)
		}
	}
	for name, r := range s.objects[kind] {
		consider(name, r.labels)
	}
	slices.SortFunc(found, compare)
	return found
}

// Exists implements observe.Inventory.
func (s *Store) Exists(kind observe.Kind, name types.NamespacedName) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.exists(kind, name)
}

func (s *Store) exists(kind observe.Kind, name types.NamespacedName) bool {
	if kind == observe.Pods {
		return s.pods[name] != nil
	}
	_, is := s.objects[kind][name]
	return is
}

// Pod implements observe.Inventory.
func (s *Store) Pod(address netip.Addr) (types.NamespacedName, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.byAddress[address.Unmap()]
	if r == nil {
		return types.NamespacedName{}, false
	}
	return r.name, true
}

// Holders implements observe.Inventory. Objects that are named by a pod and that do not
// exist are left out.
func (s *Store) Holders(kind observe.Kind, pod types.NamespacedName) []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.pods[pod]
	if p == nil {
		return nil
	}
	var candidates []types.NamespacedName
	switch kind {
	case observe.Pods:
		candidates = []types.NamespacedName{pod}
	case observe.Namespaces:
		candidates = []types.NamespacedName{{Name: pod.Namespace}}
	case observe.Nodes:
		candidates = []types.NamespacedName{{Name: p.node.Value()}}
	case observe.Services:
		for _, e := range s.endpoints[pod] {
			candidates = append(candidates, types.NamespacedName{Namespace: pod.Namespace, Name: e.service})
		}
	case observe.TrafficSplits: // they have Services, and no pods
	default:
		candidates = s.owners(kind, pod.Namespace, p.owner)
	}
	candidates = slices.DeleteFunc(candidates, func(n types.NamespacedName) bool { return !s.exists(kind, n) })
	slices.SortFunc(candidates, compare)
	return slices.Compact(candidates)
}

// owners are those of a kind in the chain that begins with an owner. A chain is short,
// and one that leads back to itself ends too.
func (s *Store) owners(kind observe.Kind, namespace string, from owner) (found []types.NamespacedName) {
	const longest = 4
	for range longest {
		if from.name == "" {
			break
		}
		name := types.NamespacedName{Namespace: namespace, Name: from.name}
		if from.kind == kind {
			found = append(found, name)
		}
		from = s.objects[from.kind][name].owner
	}
	return found
}

// Split implements observe.Inventory.
func (s *Store) Split(name types.NamespacedName) (observe.Split, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	split, is := s.splits[name]
	split.Backends = slices.Clone(split.Backends)
	return split, is
}

// all are the names of the objects of a kind, in no order.
func (s *Store) all(kind observe.Kind) []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if kind == observe.Pods {
		return slices.Collect(maps.Keys(s.pods))
	}
	return slices.Collect(maps.Keys(s.objects[kind]))
}

// allEndpoints are the names of the EndpointSlices, in no order.
func (s *Store) allEndpoints() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.slices))
}

func nameOf(m *metav1.ObjectMeta) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

func compare(a, b types.NamespacedName) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
