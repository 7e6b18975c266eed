// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// Decide says what to do about a split and what to report.
func Decide(o Observation) Decision {
	d := drain(o, decide(o))
	if o.Settling > 0 && (d.After == 0 || o.Settling < d.After) {
		d.After = o.Settling
	}
	return d
}

func decide(o Observation) Decision {
	switch {
	case o.Claim == "":
		return Decision{} // who serves the split is not known
	case o.leaving() && o.Means.Narrows():
		return withdrawRoutes(o)
	case o.leaving():
		return withdraw(o)
	case o.Moving:
		return own(o)
	case o.Claim == ClaimElsewhere:
		return Decision{}
	default:
		return serve(o)
	}
}

// own makes a split Serin's of which another router than the one that it asks for has
// left something, so that this is withdrawn before anything else is done.
func own(Observation) Decision {
	return Decision{Actions: []kit.Action{kit.AddFinalizer{}}}
}

// leaving is true when the data plane has to go. A split that is merely refused
// keeps its data plane: an error in a new generation must not touch the traffic.
// Only a circle does, see circular.
func (o Observation) leaving() bool {
	owns := slices.Contains(o.Split.Finalizers, traffic.Finalizer)
	return owns && (!o.Split.DeletionTimestamp.IsZero() ||
		o.Claim == ClaimElsewhere || o.Claim == ClaimUnknownRouter || o.Moving || o.Rival != "" || o.circular())
}

// serve is the way in. It also keeps the live weights when the split is refused.
func serve(o Observation) Decision {
	report := &Report{
		Accepted: accepted(o), ResolvedRefs: resolvedRefs(o), Backends: o.lastBackends(), Mirror: o.Split.Status.Mirror,
		Confirmed: o.Split.Status.Confirmed,
	}
	d := Decision{Report: report}
	if slices.Contains(o.Split.Finalizers, traffic.Finalizer) {
		report.Router = o.Split.Status.Router
	}
	if !o.Split.DeletionTimestamp.IsZero() {
		report.Programmed = pending("the split is being deleted")
		return d
	}
	if report.Accepted.Status == metav1.ConditionFalse {
		report.Programmed = pending("the split was refused, see Accepted; weights that were live before stay live")
		if o.Means == traffic.MeansProxies {
			d.Actions, report.Proxies = append(keepEndpoints(o), keepProxied(o)...), proxiesStatus(o)
		}
		return d
	}
	if !slices.Contains(o.Split.Finalizers, traffic.Finalizer) {
		d.Actions = append(d.Actions, kit.AddFinalizer{})
	}
	report.Router = o.Leader
	if o.Means.Narrows() {
		lead(o, &d)
	} else {
		d.Actions = append(d.Actions, addEndpoints(o)...)
		d.Actions = append(d.Actions, ensure(o)...)
		d.Actions = append(d.Actions, restore(o, "the split no longer needs it")...)
		d.Actions = append(d.Actions, cutOver(o)...)
		report.Programmed, report.Confirmed, report.Proxies = programmed(o), nil, proxiesStatus(o)
	}
	if report.Programmed.Status == metav1.ConditionTrue {
		report.Backends, report.Mirror = o.liveBackends(), o.liveMirror()
		d.Actions = append(d.Actions, removeBackends(o)...)
	}
	return d
}

// ensure makes the objects that are missing or differ. Without ports nothing is
// known about what is wanted, and the objects stay as they are. Nothing is started
// for a port that no backend could answer either, but the backend that Serin makes itself.
func ensure(o Observation) []kit.Action {
	var actions []kit.Action
	blind := len(o.Resolved.Ports) == 0 || len(o.unroutable()) > 0
	_, unprepared := o.unprepared()
	for _, object := range o.DataPlane.Objects {
		switch {
		case object.Unwanted, unprepared && !object.Prepares, blind && !object.Backend:
		case object.Condition == traffic.ObjectAbsent && !object.Patched:
			actions = append(actions, Apply{Write{object, "it does not exist"}})
		case object.Condition == traffic.ObjectOutdated:
			actions = append(actions, Apply{Write{object, "it differs from what is wanted"}})
		}
	}
	return actions
}

// removeBackends deletes the Services of Serin's that no proxy uses any more.
func removeBackends(o Observation) []kit.Action {
	var actions []kit.Action
	for _, object := range o.DataPlane.Objects {
		if object.Backend && object.Unwanted && exists(object) {
			actions = append(actions, Delete{Write{object, "the split no longer needs it"}})
		}
	}
	return actions
}

// addEndpoints makes proxies endpoints that are none yet: before the cutover those that
// confirm the generation, and after it any that can carry traffic. It goes before a change of
// the proxies: new ones have no other way to be endpoints.
func addEndpoints(o Observation) []kit.Action {
	if !o.hasSlices() && o.ready() {
		return []kit.Action{AddEndpoints{Write{serviceObject(o.Root.Service), o.serving()}}}
	}
	return keepEndpoints(o)
}

// keepEndpoints makes EndpointSlices that are missing after the cutover. Those that there are
// their own controller brings up to date.
func keepEndpoints(o Observation) []kit.Action {
	if o.hasSlices() || !o.proxied() || o.carriers() == 0 {
		return nil
	}
	return []kit.Action{AddEndpoints{Write{serviceObject(o.Root.Service), "it has no EndpointSlice of theirs"}}}
}

// cutOver sends the traffic of the root Service through the proxies once they can carry it.
func cutOver(o Observation) []kit.Action {
	if keep := keepProxied(o); keep != nil {
		return keep
	}
	if !o.ready() || !o.hasSlices() || o.joined() < max(1, o.DataPlane.WantedProxies) {
		return nil
	}
	return []kit.Action{CutOver{Write{serviceObject(o.Root.Service), o.serving()}}}
}

// ready is true when the root Service is to be cut over, and the proxies could carry its traffic.
func (o Observation) ready() bool {
	return !o.proxied() && len(o.Resolved.Ports) > 0 && o.behind() == 0 && o.confirmed() >= max(1, o.DataPlane.WantedProxies) &&
		len(obstacles(o)) == 0 && !unmade(o)
}

// unmade is true while the proxies have no Deployment: those that are there go with the one that was
// deleted, as that of an earlier split of the name.
func unmade(o Observation) bool {
	return slices.ContainsFunc(o.DataPlane.Objects, func(object traffic.Object) bool {
		return object.Workload && object.Condition == traffic.ObjectAbsent
	})
}

func (o Observation) serving() string {
	return fmt.Sprintf("%d proxies serve generation %d", o.confirmed(), o.Split.Generation)
}

// keepProxied answers to what happens after the cutover.
//
//	proxies that can carry traffic | selector's key | record    | action
//	none, and own pods ready       | there          |           | RestoreRoot: fail open
//	some                           | there          | outdated  | CutOver: record anew
//	some, as endpoints             | removed        | there     | CutOver: until then the weights do not apply
//
// The last asks for less than the first cutover does, since the weights were live before.
func keepProxied(o Observation) []kit.Action {
	switch {
	case o.proxied() && o.carriers() == 0 && o.Direct.Known && o.Direct.ReadyPods > 0:
		return []kit.Action{RestoreRoot{Write{serviceObject(o.Root.Service), "no proxy can take its requests, and its own pods can"}}}
	case o.proxied() && o.carriers() > 0 && !o.recorded():
		return []kit.Action{CutOver{Write{serviceObject(o.Root.Service), "the selector that was recorded is not what its owner declares now"}}}
	case o.lost() && o.joined() > 0:
		return []kit.Action{CutOver{Write{serviceObject(o.Root.Service), "a user or another controller removed the proxies from the selector"}}}
	}
	return nil
}
