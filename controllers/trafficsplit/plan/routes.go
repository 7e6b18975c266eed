// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// unconfirmedTimeout is how long a withdrawal waits for a gateway or mesh that says
// nothing about the restored routes. It may be gone itself, and a split must not stay
// for ever because of that.
const unconfirmedTimeout = 30 * time.Second

// EndpointTime is how long a backend has to have ready endpoints before routes send it its
// first requests: gateways and meshes watch routes and endpoints apart, and one that sees the
// route first answers with an error until its next look.
const EndpointTime = 2 * time.Second

// lead is the way in of a router whose routes name the backends.
//
// The root Service is narrowed first: the requests that reach it past the routes must
// not meet an unverified version. The weights are live when every route is confirmed and the proxies behind them had the time to follow.
func lead(o Observation, d *Decision) {
	if !o.heldByOther() {
		d.Actions = append(d.Actions, pinRoot(o)...)
		if service, _ := o.awaitsEndpoints(); service == "" {
			d.Actions = append(d.Actions, ensure(o)...)
		}
	}
	d.Actions = append(d.Actions, restore(o, "the split no longer names it")...)
	d.Report.Programmed, d.Report.Confirmed, d.After = led(o)
	if d.Report.Programmed.Status == metav1.ConditionTrue {
		d.Actions = append(d.Actions, unprepare(o, "no route refers to it any more")...)
	}
}

// pinRoot keeps the requests that bypass the routes to the backend that the split names. A
// backend without ready pods is not what requests are moved to. Where the selector leads all
// requests, and no backend has a weight, they stay where they are.
func pinRoot(o Observation) []kit.Action {
	if o.Root.Presence != kit.Present || !o.Endpoints.Known {
		return nil
	}
	switch live := traffic.PinOf(o.Root.Service).Keys; {
	case o.Pin.Backend == "" && len(live) > 0 && o.Means == traffic.MeansRoutes:
		return []kit.Action{UnpinRoot{Write{serviceObject(o.Root.Service), "the split names no backend for requests that bypass its routes"}}}
	case o.Pin.Backend == "", o.Pin.Problem != "", maps.Equal(live, o.Pin.Keys), o.pinStarves():
		return nil
	}
	return []kit.Action{PinRoot{Write{serviceObject(o.Root.Service), fmt.Sprintf("%s are for Service %q", o.narrowed(), o.Pin.Backend)}}}
}

// narrowed are the requests that the root Service's own selector leads.
func (o Observation) narrowed() string {
	if o.Means == traffic.MeansSelector {
		return "all requests"
	}
	return "requests that bypass the routes"
}

// awaitsEndpoints is a backend that the routes are to send their first requests to although
// it has no ready endpoint, or has had one for so short a time that not every proxy may know;
// left is how long that is still so. It is "" when there is none. Gateways and meshes don't
// leave such a backend out: its share of the requests fails. What had requests before keeps
// them, and where the root Service has no endpoint either, nothing is lost by writing the
// routes.
func (o Observation) awaitsEndpoints() (service string, left time.Duration) {
	if !o.Endpoints.Known || len(o.Endpoints.Ready) == 0 || o.asWanted() {
		return "", 0
	}
	for _, b := range o.Split.Spec.Backends {
		if o.Resolved.Weight(b.Service) == 0 || hadRequests(o, b.Service) {
			continue
		}
		if o.BackendEndpoints[b.Service] == 0 {
			return b.Service, 0
		}
		if rest := o.Fresh[b.Service]; rest > left {
			service, left = b.Service, rest
		}
	}
	return service, left
}

// hadRequests is true for a backend that has a live weight.
func hadRequests(o Observation, service string) bool {
	return slices.ContainsFunc(o.Split.Status.Backends, func(b splitv1.BackendStatus) bool { return b.Service == service && b.Weight > 0 })
}

// asWanted is true when no route has to be written.
func (o Observation) asWanted() bool {
	return !slices.ContainsFunc(o.DataPlane.Objects, func(object traffic.Object) bool {
		return !object.Prepares && !object.Unwanted && object.Condition != traffic.ObjectCurrent
	})
}

// heldByOther is true while another split leads the root Service.
func (o Observation) heldByOther() bool {
	if o.Root.Presence != kit.Present {
		return false
	}
	holder := traffic.Holder(o.Root.Service)
	return holder != "" && holder != o.Split.Name
}

// pinned is true while the root Service bears this split's pin.
func (o Observation) pinned() bool {
	return o.Root.Presence == kit.Present && !o.heldByOther() && len(traffic.PinOf(o.Root.Service).Keys) > 0
}

// pinStarves is true when the pin would leave the root Service without an endpoint.
func (o Observation) pinStarves() bool {
	return o.BackendEndpoints[o.Pin.Backend] == 0 && len(o.Endpoints.Ready) > 0
}

// unpin restores the selector of the root Service, unless the split moves on to another
// router, which narrows it as well or cuts it over to its proxies.
func unpin(o Observation) []kit.Action {
	if !o.pinned() || o.movesOn() {
		return nil
	}
	return []kit.Action{UnpinRoot{Write{serviceObject(o.Root.Service), "no route names the backends any more"}}}
}

// movesOn is true when another router of the operator is to lead the split next.
func (o Observation) movesOn() bool {
	return o.Moving && o.Claim == ClaimOurs && o.Split.DeletionTimestamp.IsZero() && o.Rival == "" && !o.circular()
}

// PinNext are the keys that the root Service is given in the write that removes the
// proxies from its selector, when routes are to lead from then on: in between no request
// may meet an unverified version.
func (o Observation) PinNext() map[string]string {
	if !o.movesOn() || !o.Next.Narrows() || o.Pin.Problem != "" || o.BackendEndpoints[o.Pin.Backend] == 0 {
		return nil
	}
	return o.Pin.Keys
}

// restore undoes the patches of objects that the split does not need any more, and deletes
// those that Serin made.
func restore(o Observation, why string) []kit.Action {
	var actions []kit.Action
	for _, object := range o.DataPlane.Objects {
		switch {
		case !object.Unwanted, object.Prepares:
		case object.Changed:
			actions = append(actions, Restore{Write{object, why}})
		case !object.Patched && exists(object):
			actions = append(actions, Delete{Write{object, why}})
		}
	}
	return actions
}

// owed is true for an unwanted object that is not restored yet, and that a proxy may
// still follow.
func owed(object traffic.Object) bool {
	return object.Changed || !object.Patched && !object.Prepares && exists(object)
}

func exists(object traffic.Object) bool {
	return object.Condition == traffic.ObjectOutdated || object.Condition == traffic.ObjectCurrent
}

// led says whether the generation is live, since when the routes are confirmed,
// and when to look again.
func led(o Observation) (Condition, *splitv1.ConfirmedStatus, time.Duration) {
	if waits := obstacles(o); len(waits) > 0 {
		return pending("%s", waits[0]), nil, 0
	}
	if left, waiting := o.unprepared(); waiting {
		return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForRoutes, fmt.Sprintf(
			"the objects that the routes will refer to are made; proxies get %s to learn of them", o.DataPlane.Settle)}, nil, left
	}
	if service, left := o.awaitsEndpoints(); left > 0 {
		return Condition{metav1.ConditionFalse, splitv1.ReasonNoEndpoints, fmt.Sprintf(
			"Service %q is about to get its first requests, and its first endpoint has only just become ready; Serin writes the routes when every proxy can know it", service)}, nil, left
	} else if service != "" {
		return Condition{metav1.ConditionFalse, splitv1.ReasonNoEndpoints, fmt.Sprintf(
			"Service %q is about to get its first requests but has no ready endpoint yet; Serin writes the routes when it has one", service)}, nil, 0
	}
	if c, waiting := waitingForRoutes(o); waiting {
		return c, nil, 0
	}
	c, waiting := waitingForPin(o)
	if waiting && o.Means == traffic.MeansSelector {
		return c, nil, 0 // what is to follow are these very endpoints
	}
	confirmed := o.confirmedSince()
	if waiting {
		return c, confirmed, 0
	}
	if left := confirmed.Since.Add(o.DataPlane.Settle).Sub(o.Now); left > 0 {
		return Condition{metav1.ConditionFalse, splitv1.ReasonSettling, o.settling()}, confirmed, left
	}
	if o.Means == traffic.MeansSelector {
		return Condition{metav1.ConditionTrue, splitv1.ReasonProgrammed, fmt.Sprintf(
			"the endpoints of Service %q are those of Service %q", o.Root.Service.Name, o.Pin.Backend)}, confirmed, 0
	}
	message := "the weights are live for every request that passes the routes"
	if o.Resolved.Limited {
		message = "the weights are live for every request that passes the routes and matches"
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonProgrammed, message}, confirmed, 0
}

// settling is what has the time to follow, and how much of it.
func (o Observation) settling() string {
	if o.Means == traffic.MeansSelector {
		return fmt.Sprintf("the Service has the right endpoints; waiting %s until every kube-proxy follows", o.DataPlane.Settle)
	}
	return fmt.Sprintf("the routes have the weights; waiting %s until the proxies behind them follow", o.DataPlane.Settle)
}

// waitingForRoutes tells which route is not as wanted yet.
func waitingForRoutes(o Observation) (Condition, bool) {
	for _, object := range o.DataPlane.Objects {
		name := fmt.Sprintf("%s %q", object.Kind, object.Name)
		because := ""
		if object.Problem != "" {
			because = ": " + object.Problem
		}
		switch {
		case object.Unwanted && owed(object):
			return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForRoutes, name + " is being restored"}, true
		case object.Unwanted:
		case object.Condition != traffic.ObjectCurrent:
			return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForRoutes, name + " is being written"}, true
		case object.Confirmation == traffic.ConfirmationRefused:
			return Condition{metav1.ConditionFalse, splitv1.ReasonRouteRefused, name + " is refused" + because}, true
		case object.Confirmation == traffic.ConfirmationPending:
			return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForRoutes, name + " is not confirmed yet" + because}, true
		}
	}
	return Condition{}, false
}

// waitingForPin tells what keeps requests that bypass the routes from meeting one version only.
func waitingForPin(o Observation) (Condition, bool) {
	switch {
	case o.Pin.Backend == "":
		return Condition{}, false
	case o.Pin.Problem != "":
		return pending("%s", o.Pin.Problem), true
	case o.pinStarves() && !maps.Equal(traffic.PinOf(o.Root.Service).Keys, o.Pin.Keys):
		return pending("Service %q has no ready endpoint that could take %s", o.Pin.Backend, taken(o)), true
	case !o.Endpoints.Known:
		return Condition{metav1.ConditionUnknown, splitv1.ReasonWaitingForService, "the endpoints of the root Service could not be read"}, true
	case !maps.Equal(traffic.PinOf(o.Root.Service).Keys, o.Pin.Keys) || o.Pin.Around > 0 || o.Means == traffic.MeansSelector && o.Pin.Missing > 0:
		return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForService, fmt.Sprintf(
			"Service %q is being narrowed to the pods of Service %q", o.Root.Service.Name, o.Pin.Backend)}, true
	}
	return Condition{}, false
}

// taken is narrowed as what a backend takes.
func taken(o Observation) string { return "the " + strings.TrimPrefix(o.narrowed(), "all ") }

// confirmedSince is since when the routes ask for what they ask for now. A time that is still to come
// is of another clock.
func (o Observation) confirmedSince() *splitv1.ConfirmedStatus {
	configuration := o.configuration()
	for _, c := range []*splitv1.ConfirmedStatus{o.Confirmed, o.Split.Status.Confirmed} {
		if c != nil && c.Configuration == configuration && !c.Since.After(o.Now) {
			return c
		}
	}
	return &splitv1.ConfirmedStatus{Configuration: configuration, Since: metav1.NewMicroTime(o.Now.Truncate(time.Microsecond))}
}

// configuration changes with what the routes ask for. It includes their generations, so
// that a route which a user changed and Serin patched again in between counts as new.
func (o Observation) configuration() string {
	sum := sha256.New()
	fmt.Fprintln(sum, o.leaving(), o.Resolved.Digest())
	for _, object := range o.DataPlane.Objects {
		if !object.Prepares || !object.Unwanted {
			fmt.Fprintln(sum, object.Kind, object.Name, object.UID, object.Generation)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// withdrawRoutes is the way out: the routes name the root Service again, the proxies
// behind them follow, and only then the selector of the root Service is restored.
func withdrawRoutes(o Observation) Decision {
	status := o.Split.Status
	d := Decision{Report: &Report{
		Accepted: accepted(o), ResolvedRefs: resolvedRefs(o), Backends: o.lastBackends(), Mirror: status.Mirror, Router: o.Leader,
	}}
	o.DataPlane.Objects = slices.Clone(o.DataPlane.Objects)
	for i := range o.DataPlane.Objects {
		o.DataPlane.Objects[i].Unwanted = true
	}
	if actions := restore(o, "the split leaves"); len(actions) > 0 {
		d.Actions = actions
		d.Report.Confirmed = o.confirmedSince() // there is something to settle, whatever was live before
		d.Report.Programmed = pending("being withdrawn: the routes are being restored")
		return d
	}
	wait, again := o.unsettled(&d)
	if wait == "" {
		if d.Actions = unprepare(o, "no proxy can have a route to it any more"); len(d.Actions) > 0 {
			wait = "the objects that the routes referred to are being deleted"
		}
	}
	if wait != "" {
		d.After = again
		d.Report.Programmed = pending("being withdrawn: %s", wait)
		return d
	}
	d.Actions = append(d.Actions, unpin(o)...)
	if o.Split.DeletionTimestamp.IsZero() && (status.Confirmed != nil || len(status.Backends) > 0) {
		// Reported before the finalizer goes: afterwards no field shows that it was there.
		d.Report.Backends, d.Report.Mirror, d.Report.Confirmed = nil, nil, nil
		d.Report.Programmed = pending("being withdrawn: no route names the backends any more")
		return d
	}
	d.Report = nil // what there is to say without a data plane, the next pass says
	d.Actions = append(d.Actions, kit.RemoveFinalizer{})
	return d
}

// unsettled is what proxies may still be led by, and for how long. It is nothing when
// no route ever named the backends.
func (o Observation) unsettled(d *Decision) (wait string, left time.Duration) {
	for _, object := range o.DataPlane.Objects {
		if !object.Patched && !object.Prepares && object.Condition == traffic.ObjectTerminating {
			d.Report.Confirmed = o.Split.Status.Confirmed
			return fmt.Sprintf("%s %q is being deleted", object.Kind, object.Name), 0
		}
	}
	if o.Split.Status.Confirmed == nil && len(o.Split.Status.Backends) == 0 {
		return "", 0
	}
	d.Report.Confirmed = o.confirmedSince()
	settle := o.DataPlane.Settle
	for _, object := range o.DataPlane.Objects {
		if object.Confirmation == traffic.ConfirmationPending {
			settle = max(settle, unconfirmedTimeout)
		}
	}
	if left = d.Report.Confirmed.Since.Add(settle).Sub(o.Now); left <= 0 {
		return "", 0
	}
	return fmt.Sprintf("waiting %s until the proxies behind the routes follow", o.DataPlane.Settle), left
}
