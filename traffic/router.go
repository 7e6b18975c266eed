// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Router programs one kind of data plane with splits. It says what is there
// and writes single objects; when to do what is decided by the TrafficSplit
// controller's plan, the same for every router of the same Means.
type Router interface { //nolint:interfacebloat // who serves splits needs each of them
	// Name is the value of the field router of a split's routing that chooses this router.
	Name() string

	// Means by which the router leads traffic to the backends.
	Means() Means

	// Kinds of the objects that the router reads and writes. Those that it makes carry
	// the label LabelProxy with the name of their split. Those that it patches carry the
	// annotation AnnotationSplit while they are changed.
	Kinds() []schema.GroupVersionKind

	// Check finds what the router can't express, and begins with Lacking. It is pure.
	// services are those that the split names, by name.
	Check(split Split, services map[string]*corev1.Service) []Problem

	// Observe reads the data plane of a split from the cache. An error means that
	// nothing is known, never that something is absent.
	Observe(ctx context.Context, target Target) (State, error)

	// Apply makes one object of State.Objects as it is wanted. It fails when the
	// object is no longer the one that was observed.
	Apply(ctx context.Context, target Target, object Object) error

	// Restore makes a patched object what its owner meant it to be without the split.
	// It fails when the object is no longer the one that was observed.
	Restore(ctx context.Context, target Target, object Object) error
}

// NamespaceWatcher is a Router whose splits also depend on objects that it did not make and
// that no split names.
type NamespaceWatcher interface {
	// NamespaceKinds are those of Kinds of which any object may matter to every split of its
	// namespace that asks for the router. What its status says does not.
	NamespaceKinds() []schema.GroupVersionKind
}

// Hosted is a Router whose splits also depend on what serves their routes, which may be
// of another namespace, or of none.
type Hosted interface {
	// Hosts are the kinds of objects that say what serves routes.
	Hosts() []schema.GroupVersionKind
	// DependsOnHosts is true for a split that such objects may make impossible, or possible
	// again.
	DependsOnHosts(split *splitv1.TrafficSplit) bool
}

// Means is how a router leads the traffic of a root Service to its backends.
type Means string

// The means.
const (
	// MeansProxies: traffic of the root Service goes through the router's own proxies.
	MeansProxies Means = "Proxies"
	// MeansRoutes: a gateway or mesh does, by routes that name the backends. The
	// requests that do not pass it reach the root Service as without a split.
	MeansRoutes Means = "Routes"
	// MeansSelector: the root Service selects the pods of one backend itself.
	MeansSelector Means = "Selector"
)

// Narrows is true when the selector of the root Service is narrowed to one backend.
func (m Means) Narrows() bool { return m == MeansRoutes || m == MeansSelector }

// Target is the split that a data plane is for.
type Target struct {
	// Split as read.
	Split *splitv1.TrafficSplit
	// Root Service; nil when it does not exist.
	Root *corev1.Service
	// Endpoints is how many ready endpoints the backends have together.
	Endpoints int
	// Resolved form of Split. It has no ports when the split is refused or the root
	// Service does not exist; the data plane then stays as it is.
	Resolved Split
	// Asked is true when the split asks for the router that observes it.
	Asked bool
}

// State is what there is of a data plane.
type State struct {
	// Objects that the split needs or has, in the order in which they are made.
	Objects []Object
	// WantedProxies is how many proxies have to be ready before the root Service is cut
	// over to them.
	WantedProxies int
	// Proxies that exist, by name.
	Proxies []Proxy
	// Problems are what the router can't do with the objects that there are; they refuse
	// the split as those of Check do.
	Problems []Problem
	// Settle is how long a data plane that does not say what its proxies serve may go
	// on to serve what was before, after its routes were written and confirmed.
	Settle time.Duration
}

// Empty is true when nothing of the data plane exists but what splits share.
func (s State) Empty() bool {
	for _, o := range s.Objects {
		if o.Shared {
			continue
		}
		if o.Changed || !o.Patched && o.Condition != ObjectAbsent && o.Condition != ObjectForeign {
			return false
		}
	}
	return len(s.Proxies) == 0
}

// Object is one object of the data plane, or the root Service, as observed.
type Object struct {
	// GroupVersionKind of the object.
	schema.GroupVersionKind
	// Namespace of the object; "" for the split's.
	Namespace string
	// Name of the object.
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
	// that leaves no room for proxies or a gateway that refuses a route, or what it
	// waits for; "" when the cluster does not say.
	Problem string
	// Generation of the object's spec that was observed.
	Generation int64
	// Patched is true for an object that a user or another controller owns: Serin changes it
	// while it serves the split, restores it afterwards, and never makes or deletes it.
	Patched bool
	// Changed is true for a patched object that bears changes to restore.
	Changed bool
	// Unwanted is true for an object that the split no longer needs: it is restored, or
	// deleted when it is not patched.
	Unwanted bool
	// Prepares is true for an object that the others refer to: the data plane has to know
	// it before they are written, and it goes after they do.
	Prepares bool
	// Backend is true for a Service that gets requests itself: the split can't be served before
	// it is there, and it goes when no proxy uses it any more.
	Backend bool
	// Shared is true for an object that is the same for all splits of the namespace. It is
	// made with the first and deleted with the last.
	Shared bool
	// InUse is true for a shared object that a proxy of any split needs, or will.
	InUse bool
	// Created is when the object was made; zero when no decision needs it.
	Created time.Time
	// Confirmation is what the data plane says about the object as it is now.
	Confirmation Confirmation
}

// Confirmation is what a data plane says about a generation of an object.
type Confirmation string

// The confirmations.
const (
	// ConfirmationNone: the data plane never says anything about such an object.
	ConfirmationNone Confirmation = ""
	// ConfirmationPending: it has not said anything about the generation yet.
	ConfirmationPending Confirmation = "Pending"
	// ConfirmationGiven: it takes the generation.
	ConfirmationGiven Confirmation = "Given"
	// ConfirmationRefused: it does not take the generation. Object.Problem says why.
	ConfirmationRefused Confirmation = "Refused"
)

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
	// ObjectForeign: a user or another controller owns the object, so Serin never touches it.
	ObjectForeign ObjectCondition = "Foreign"
)

// Proxy is one proxy of a data plane.
type Proxy struct {
	// Name of the proxy's pod.
	Name string
	// Node that the pod is on; "" before it has one.
	Node string
	// Ready to take requests.
	Ready bool
	// Terminating proxies finish what they have and take nothing new.
	Terminating bool
	// StopsBy is when the grace period of one that is terminating ends.
	StopsBy time.Time
	// Unowned is when the pod of one that nothing owns was made; zero for one that has an owner. The
	// pods of a restored backup have none until their ReplicaSet has adopted them.
	Unowned time.Time
	// Unread is true while nothing was read of the proxy, nor failed to be read, since what
	// it is to serve is what it is now.
	Unread bool
	// Generation of the split that the proxy serves; 0 when that is not known.
	Generation int64
	// Configuration is the digest of what the proxy serves (see Split.Digest); "" when
	// that is not known.
	Configuration string
	// Message is what the proxy, or the cluster about it, has to say.
	Message string
}
