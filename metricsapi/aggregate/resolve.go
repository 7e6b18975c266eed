// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// ref names an object. One without a name is all that is known: a namespace, or nothing.
type ref struct {
	kind observe.Kind
	name types.NamespacedName
}

// object is the reference in the form of the API; one to nothing is empty, not nil.
func (r ref) object() *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: r.kind.Kind, APIVersion: r.kind.APIVersion, Namespace: r.name.Namespace, Name: r.name.Name}
}

// owners are the kinds that make pods, those first that a user would name.
var owners = []observe.Kind{
	observe.Deployments, observe.StatefulSets, observe.DaemonSets, observe.Jobs, observe.ReplicaSets, observe.ReplicationControllers,
}

// end is one end of a flow, as the cluster knows it.
type end struct {
	namespace string
	// pod is zero where pods are not distinguished.
	pod      types.NamespacedName
	workload observe.Workload
	// services that the requests were sent to, from the one that the client called to
	// the one of the pods.
	services []string
	// owner is the workload of the end, or as much as is known of it.
	owner ref
}

// flow is a flow of which the ends are known as well as they can be.
type flow struct {
	*observe.Flow
	client, server end
}

// resolved has the flows of a snapshot with the owners of their ends, for one answer.
type resolved struct {
	inventory observe.Inventory
	flows     []flow
	owned     map[types.NamespacedName]ref
	behind    *behind
	// sent and served are the owners whose own side counted.
	sent, served map[ref]bool
}

// newResolved finds out whose the flows are. Flows without requests say nothing.
func newResolved(s observe.Snapshot, inventory observe.Inventory) *resolved {
	t := &resolved{
		inventory: inventory, flows: make([]flow, 0, len(s.Flows)), owned: map[types.NamespacedName]ref{},
		behind: newBehind(inventory), sent: map[ref]bool{}, served: map[ref]bool{},
	}
	for i := range s.Flows {
		f := &s.Flows[i]
		if !isCount(f.Success) || !isCount(f.Failure) || f.Success+f.Failure == 0 {
			continue
		}
		resolved := flow{Flow: f, client: t.end(f.Client, f.Client.Service), server: t.end(f.Server, f.Apex, f.Backend, f.Server.Service)}
		t.flows = append(t.flows, resolved)
		if f.Side == metricsv1.SideServer {
			t.served[resolved.server.owner] = true
		} else {
			t.sent[resolved.client.owner] = true
		}
	}
	return t
}

func isCount(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// counts reports whether a flow is to be counted in a direction. Where both sides saw the
// requests, the side of the resource in question counts: the server for what was
// received and the client for what was sent. That is decided for each workload, since a
// mesh has all of its pods or none.
func (t *resolved) counts(f *flow, d metricsv1.Direction) bool {
	if d == metricsv1.DirectionFrom {
		return f.Side == metricsv1.SideServer || f.server.owner == ref{} || !t.served[f.server.owner]
	}
	return f.Side == metricsv1.SideClient || f.client.owner == ref{} || !t.sent[f.client.owner]
}

// end finds out what a party is that some Services stand for, the called one first.
func (t *resolved) end(p observe.Party, services ...string) end {
	e := end{namespace: p.Namespace, workload: p.Workload}
	for _, name := range services {
		if name != "" && !slices.Contains(e.services, name) {
			e.services = append(e.services, name)
		}
	}
	switch {
	case p.Pod != "":
		e.pod = types.NamespacedName{Namespace: p.Namespace, Name: p.Pod}
	case p.Address.IsValid():
		if pod, found := t.inventory.Pod(p.Address); found {
			e.pod, e.namespace = pod, pod.Namespace
		}
	case p.Workload.Name != "" && p.Workload.Kind == (observe.Kind{}):
		t.guess(&e)
	}
	e.owner = t.owner(&e)
	return e
}

// guess finds the kind of a workload of which only the name is known. A pod without
// an owner is its own workload.
func (t *resolved) guess(e *end) {
	name := types.NamespacedName{Namespace: e.namespace, Name: e.workload.Name}
	for _, kind := range owners {
		if t.inventory.Exists(kind, name) {
			e.workload.Kind = kind
			return
		}
	}
	if t.inventory.Exists(observe.Pods, name) {
		e.pod = name
	}
}

// owner is what the pods of an end belong to, or as much as is known of them.
func (t *resolved) owner(e *end) ref {
	if known, found := t.owned[e.pod]; found && e.pod.Name != "" {
		return known
	}
	owner := ref{name: types.NamespacedName{Namespace: e.namespace}}
	for _, kind := range slices.Concat(owners, []observe.Kind{observe.Pods, observe.Services}) {
		if holders := t.in(e, kind); len(holders) > 0 {
			owner = ref{kind, holders[0]}
			break
		}
	}
	if e.pod.Name != "" {
		t.owned[e.pod] = owner
	}
	return owner
}

// in are the objects of a kind that an end is part of.
func (t *resolved) in(e *end, kind observe.Kind) []types.NamespacedName {
	switch {
	case kind == observe.Namespaces && e.namespace != "":
		return []types.NamespacedName{{Name: e.namespace}}
	case kind == observe.Services:
		return t.inServices(e)
	case kind == observe.Pods && e.pod.Name != "":
		return []types.NamespacedName{e.pod}
	}
	return t.holders(e, kind)
}

// holders are the objects of a kind that contain the pods of an end.
func (t *resolved) holders(e *end, kind observe.Kind) []types.NamespacedName {
	if e.pod.Name != "" {
		if holders := t.inventory.Holders(kind, e.pod); len(holders) > 0 {
			return holders
		}
	}
	if e.workload.Name != "" {
		if e.workload.Kind != kind {
			return nil
		}
		return []types.NamespacedName{{Namespace: e.namespace, Name: e.workload.Name}}
	}
	if e.pod.Name != "" || len(e.services) == 0 {
		return nil
	}
	return t.behind.common(kind, types.NamespacedName{Namespace: e.namespace, Name: e.services[len(e.services)-1]})
}

// inServices are the Services that the requests were sent to, and then those that have
// the pod among their endpoints.
func (t *resolved) inServices(e *end) []types.NamespacedName {
	var all []types.NamespacedName
	for _, name := range e.services {
		all = append(all, types.NamespacedName{Namespace: e.namespace, Name: name})
	}
	if e.pod.Name == "" {
		return all
	}
	for _, holder := range t.inventory.Holders(observe.Services, e.pod) {
		if !slices.Contains(all, holder) {
			all = append(all, holder)
		}
	}
	return all
}

// other is how an end is named next to a resource of a kind: by the object of the same
// kind, otherwise by its workload or its pod.
func (t *resolved) other(e *end, kind observe.Kind) ref {
	if same := t.in(e, kind); len(same) > 0 {
		return ref{kind, same[0]}
	}
	return e.owner
}
