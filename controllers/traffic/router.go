// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Router puts splits in effect with one kind of data plane: a set of objects and
// of proxies that stand in the path of the root Service. It says what is there
// and makes single objects; when to do what is decided by the TrafficSplit
// controller's plan, the same for every router.
type Router interface {
	// Name is the value of the annotation serin.dev/router that chooses this router.
	Name() string

	// Kinds of the objects that the router makes and of its proxies. Each of them
	// carries the label LabelProxy with the name of its split.
	Kinds() []schema.GroupVersionKind

	// Check finds what the router can't express, and begins with Lacking. It is pure.
	// services are those of the split's namespace that are known, by name.
	Check(split Split, services map[string]*corev1.Service) []Problem

	// Observe reads the data plane of a split from the cache. An error means that
	// nothing is known, never that something is absent.
	Observe(ctx context.Context, target Target) (State, error)

	// Apply makes one object of State.Objects as it is wanted. It fails when the
	// object is no longer the one that was observed.
	Apply(ctx context.Context, target Target, object Object) error
}

// Target is the split that a data plane is for.
type Target struct {
	// Split as read.
	Split *splitv1.TrafficSplit
	// Root Service; nil when it does not exist.
	Root *corev1.Service
	// Resolved form of Split. It has no ports when the split is refused or the root
	// Service does not exist; the data plane then stays as it is.
	Resolved Split
}

// State is what there is of a data plane.
type State struct {
	// Objects that the split needs or has, in the order in which they are made.
	Objects []Object
	// WantedProxies is how many proxies have to be ready before they may take over
	// the root Service.
	WantedProxies int
	// Proxies that exist, by name.
	Proxies []Proxy
}

// Empty is true when nothing of the data plane exists.
func (s State) Empty() bool {
	for _, o := range s.Objects {
		if o.Condition != ObjectAbsent {
			return false
		}
	}
	return len(s.Proxies) == 0
}

// Object is one object of the data plane, or the root Service, as observed.
type Object struct {
	// GroupVersionKind of the object.
	schema.GroupVersionKind
	// Name of the object, in the split's namespace.
	Name string
	// UID and ResourceVersion of what was observed: the preconditions of every
	// write. Empty when the object is absent.
	UID types.UID
	// ResourceVersion that was observed.
	ResourceVersion string
	// Condition of the object.
	Condition ObjectCondition
	// Workload is true for the object that runs the proxies: it is deleted first,
	// and the others only when no proxy is left.
	Workload bool
	// Problem is why the cluster can't make what the object asks for, such as a quota
	// that leaves no room for proxies; "" when nobody says so.
	Problem string
}

// ObjectCondition is how an object compares with what is wanted.
type ObjectCondition string

// The conditions that an object can be in. The empty one is not valid: it stands
// for nothing known.
const (
	// ObjectAbsent: there is no such object.
	ObjectAbsent ObjectCondition = "Absent"
	// ObjectOutdated: the object differs from what is wanted.
	ObjectOutdated ObjectCondition = "Outdated"
	// ObjectCurrent: the object is as wanted.
	ObjectCurrent ObjectCondition = "Current"
	// ObjectTerminating: the object is being deleted.
	ObjectTerminating ObjectCondition = "Terminating"
	// ObjectForeign: the object belongs to somebody else and is never touched.
	ObjectForeign ObjectCondition = "Foreign"
)

// Proxy is one proxy of a data plane.
type Proxy struct {
	// Name of the proxy's pod.
	Name string
	// Ready to take requests.
	Ready bool
	// Selected by what the root Service's owner declares. A proxy made before the
	// owner changed that is not, and gets no requests.
	Selected bool
	// Terminating proxies finish what they have and take nothing new.
	Terminating bool
	// Generation of the split that the proxy reports; 0 when it reports nothing.
	Generation int64
	// Configuration is the digest of what the proxy serves (see Split.Digest); ""
	// when it does not report it.
	Configuration string
	// Message is what the proxy, or the cluster about it, has to say.
	Message string
}
