// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Class is what a request means to the cluster.
type Class string

// Classes of requests, in the order in which they are shown.
const (
	// ClassWrite changes an object, or tries to.
	ClassWrite Class = "write"
	// ClassRead is a get or a list that the API server answers, beyond watches.
	ClassRead Class = "read"
	// ClassEvent tells people.
	ClassEvent Class = "event"
	// ClassLease keeps the leader's lease, whether or not there is anything to do.
	ClassLease Class = "lease"
	// ClassWatch is a watch that was renewed.
	ClassWatch Class = "watch"
)

// Who is behind a request.
type Who string

// Controllers, and who answers them.
const (
	// ByRollouts is the controller of Rollouts.
	ByRollouts Who = "Rollout"
	// BySplits is the controller of TrafficSplits with its router.
	BySplits Who = "TrafficSplit"
	// ByProxies are the proxies, which should write nothing.
	ByProxies Who = "proxies"
)

// Call is a kind of request.
type Call struct {
	Class Class
	Who   Who
	Verb  string
	// What is a resource, with its subresource; for an event, with its reason.
	What string
}

// Tally counts requests.
type Tally struct {
	Calls map[Call]int
	// Failed are those among them that were not answered with success.
	Failed map[string]int
}

// tally counts the requests of the operator and of the proxies. One that the
// operator's role forbids is an error: what is measured would not be a release.
func tally(requests []request) (Tally, error) {
	t := Tally{Calls: map[Call]int{}, Failed: map[string]int{}}
	for i := range requests {
		r := &requests[i]
		if r.UserAgent == agentOfProxies && r.Object.Resource == "trafficsplits" {
			t.Calls[Call{Class: ClassWrite, Who: ByProxies, Verb: r.Verb, What: r.resource()}]++
			continue
		}
		if !r.byOperator() {
			continue
		}
		if r.Annotations["authorization.k8s.io/decision"] == "forbid" {
			return t, fmt.Errorf("the chart's role forbids %s %s", r.Verb, r.URI)
		}
		c := classify(r)
		t.Calls[c]++
		if r.Response.Code >= 400 && c.Class != ClassWatch {
			t.Failed[fmt.Sprintf("%s %s: %d", c.Verb, c.What, r.Response.Code)]++
		}
	}
	return t, nil
}

func classify(r *request) Call {
	c := Call{Verb: r.Verb, What: r.resource()}
	switch {
	case r.Object.Resource == "leases":
		c.Class = ClassLease
	case r.Object.Resource == "events":
		reason, kind := describeEvent(r.Body)
		c.Class, c.Who, c.What = ClassEvent, Who(kind), "events "+reason
		// One that was cut off, when the manager ended, has no body. In its own namespace the
		// manager tells of nothing but the lease.
		if kind == "Lease" || kind == "" && r.Object.Namespace == operatorSpace {
			c.Class, c.Who = ClassLease, ""
		}
	case r.Verb == "watch":
		c.Class = ClassWatch
	case r.Verb == "get" || r.Verb == "list":
		c.Class, c.Who = ClassRead, controllerOf(r)
	default:
		c.Class, c.Who = ClassWrite, controllerOf(r)
	}
	return c
}

// controllerOf tells the two controllers, which are one client, apart by what they
// change.
func controllerOf(r *request) Who {
	switch r.Object.Resource {
	case "rollouts", "replicasets":
		return ByRollouts
	case "trafficsplits":
		// A split is made with its finalizer, which only its controller removes.
		if r.Object.Subresource == "" && (r.Verb == "create" || !bytes.Contains(r.Body, []byte(`"finalizers"`))) {
			return ByRollouts
		}
	case "deployments":
		if strings.HasPrefix(r.Object.Name, proxyPrefix) {
			return BySplits
		}
		return ByRollouts
	case "services":
		// The Services of single versions are the Rollout's, the root is the split's.
		if strings.HasSuffix(r.Object.Name, "-stable") || strings.HasSuffix(r.Object.Name, "-canary") {
			return ByRollouts
		}
	}
	return BySplits
}

// describeEvent is an event's reason, and the kind of what it is about. There are
// two APIs for events.
func describeEvent(body json.RawMessage) (reason, kind string) {
	type object struct {
		Kind string `json:"kind"`
	}
	var e struct {
		Reason    string `json:"reason"`
		Regarding object `json:"regarding"`
		Involved  object `json:"involvedObject"`
	}
	// A body that is missing or broken gives an event without a reason, which shows.
	_ = json.Unmarshal(body, &e)
	return e.Reason, cmp.Or(e.Regarding.Kind, e.Involved.Kind)
}

// Sum is how many requests of a class there are; of all writers, or of some.
func (t Tally) Sum(class Class, of ...Who) int {
	n := 0
	for c, count := range t.Calls {
		if c.Class == class && (len(of) == 0 || slices.Contains(of, c.Who)) {
			n += count
		}
	}
	return n
}

// Requests are all requests but those that keep watches and the lease.
func (t Tally) Requests() int {
	return t.Sum(ClassWrite, ByRollouts, BySplits) + t.Sum(ClassRead) + t.Sum(ClassEvent)
}

// Sorted are the calls by class, then the most frequent first.
func (t Tally) Sorted() []Call {
	order := []Class{ClassWrite, ClassRead, ClassEvent, ClassLease, ClassWatch}
	return slices.SortedFunc(maps.Keys(t.Calls), func(a, b Call) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Class), slices.Index(order, b.Class)),
			cmp.Compare(a.Who, b.Who), cmp.Compare(t.Calls[b], t.Calls[a]),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Verb, b.Verb),
		)
	})
}

func (t Tally) String() string {
	var b strings.Builder
	for _, c := range t.Sorted() {
		fmt.Fprintf(&b, "%6d %s of %s: %s %s\n", t.Calls[c], c.Class, c.Who, c.Verb, c.What)
	}
	for _, failed := range slices.Sorted(maps.Keys(t.Failed)) {
		fmt.Fprintf(&b, "%6d failed: %s\n", t.Failed[failed], failed)
	}
	return b.String()
}
