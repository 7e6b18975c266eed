// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// blockedRecheck is how often pods that no watch reports are looked at again
// while they keep the root Service from being restored.
const blockedRecheck = 5 * time.Second

// withdraw is the way out.
func withdraw(o Observation) Decision {
	d := Decision{Report: &Report{
		Accepted: accepted(o), ResolvedRefs: resolvedRefs(o), Backends: o.lastBackends(), Mirror: o.Split.Status.Mirror, Router: o.Leader,
	}}
	if wait, again := restoreTraffic(o, &d); wait != "" {
		d.Report.Programmed = pending("being withdrawn: %s", wait)
		d.After = again
		return d
	}
	d.Report.Backends, d.Report.Mirror = nil, nil // none is live any more
	if wait, again := dismantle(o, &d); wait != "" {
		d.Report.Programmed = pending("being withdrawn: %s", wait)
		d.After = again
		return d
	}
	d.Report = nil // what there is to say without a data plane, the next pass says
	d.Actions = append(d.Actions, unpin(o)...)
	d.Actions = append(d.Actions, kit.RemoveFinalizer{})
	return d
}

// restoreTraffic removes the proxies from the root Service. It returns what it waits for,
// and nothing when the traffic flows as without Serin.
func restoreTraffic(o Observation, d *Decision) (wait string, again time.Duration) {
	switch {
	case o.Root.gone():
		return "", 0 // there is no traffic any more
	case o.Root.Presence != kit.Present:
		return "the root Service could not be read", 0
	case o.proxied() || o.marked():
		return restoreRoot(o, d)
	case o.DataPlane.Empty():
		return "", 0
	case !o.Endpoints.Known:
		return "the root Service's endpoints could not be read", 0
	// Proxies stay among the root Service's endpoints until they stop. What counts is that
	// others have joined them.
	case o.around() == 0 && !o.Direct.Known:
		return "the pods behind the root Service could not be read", 0
	case o.around() == 0 && o.Direct.ReadyPods > 0:
		return "the root Service's endpoints are not its own pods yet", blockedRecheck
	default:
		return "", 0
	}
}

// restoreRoot removes the key from the selector unless that would leave the root
// Service with no endpoint while the proxies still have backends to serve it from.
func restoreRoot(o Observation, d *Decision) (wait string, again time.Duration) {
	if o.proxied() && !o.Direct.Known {
		return "the pods behind the root Service could not be read", 0
	}
	if o.proxied() && o.Direct.ReadyPods == 0 && !o.Direct.Unselected && o.through() > 0 && backendsReady(o) > 0 {
		return fmt.Sprintf("traffic still goes through the proxies, since the selector of Service %q selects no ready pod without them; "+
			"make such a pod ready, or delete the Service or the backends", o.Root.Service.Name), blockedRecheck
	}
	d.Actions = append(d.Actions, RestoreRoot{Write{serviceObject(o.Root.Service), "its own pods get its traffic again"}})
	return "the root Service is being restored", 0
}

func backendsReady(o Observation) int32 {
	var n int32
	for _, name := range resolve.ServiceNames(o.Split) {
		if name != o.Resolved.Root {
			n += o.BackendEndpoints[name]
		}
	}
	return n
}

// dismantle deletes the data plane: first what runs the proxies and what keeps them
// from being evicted, and the rest when they are gone. It returns what it waits for, and when to
// look again if nothing changes.
func dismantle(o Observation, d *Decision) (wait string, again time.Duration) {
	var workload, others []traffic.Object
	for _, object := range o.DataPlane.Objects {
		switch {
		case object.Condition == traffic.ObjectAbsent || object.Condition == traffic.ObjectForeign:
		case object.Shared && object.InUse: // the operator that uses it last deletes it
		case object.Workload, object.Kind == "PodDisruptionBudget":
			// Its status changes with every proxy that stops.
			workload = append(workload, object)
		default:
			others = append(others, object)
		}
	}
	if len(workload) > 0 {
		if adoption, again := Unadopted(o.DataPlane.Proxies, o.Now); adoption != "" {
			return adoption, again
		}
		slices.Reverse(workload) // so that the budget goes before the pods that it counts
		d.Actions = append(d.Actions, deleteAll(workload, "traffic no longer passes the proxies")...)
		return "the proxies are being stopped", 0
	}
	if wait, again := Stopping(o.DataPlane.Proxies, o.Now); wait != "" {
		return wait, again
	}
	if len(others) > 0 {
		d.Actions = append(d.Actions, deleteAll(others, "no proxy is left")...)
		return "the proxies' objects are being deleted", 0
	}
	return "", 0
}

// adoptedWithin is how long after it was made a pod is expected to have an owner. Its ReplicaSet adopts
// it within seconds, where there is one and the controller of ReplicaSets runs.
const adoptedWithin = time.Minute

// Unadopted is what the deletion of the ReplicaSets and the Deployment of some proxies waits for, and
// when to look again if nothing changes; nothing when each proxy has an owner, or has lacked one for
// long. A pod whose ReplicaSet goes before it has adopted it is stopped by nothing.
func Unadopted(proxies []traffic.Proxy, now time.Time) (wait string, again time.Duration) {
	for _, p := range proxies {
		if left := p.Unowned.Add(adoptedWithin).Sub(now); !p.Terminating && !p.Unowned.IsZero() && left > 0 {
			return fmt.Sprintf("no ReplicaSet has adopted proxy %q yet, and would stop it", p.Name), min(left, blockedRecheck)
		}
	}
	return "", 0
}

// lostAfter is how long after its grace period a pod may take to go. The kubelet ends it within
// seconds, where there is one.
const lostAfter = time.Minute

// Stopping is what the end of the proxies waits for, and when to look again if nothing changes;
// nothing when none is left. A proxy whose node does not end it is not waited for: without a node
// that answers, its pod stays until an administrator deletes it, and no request reaches it.
func Stopping(proxies []traffic.Proxy, now time.Time) (wait string, again time.Duration) {
	for _, p := range proxies {
		stop, look := p.StopsBy, p.StopsBy.Add(lostAfter)
		switch {
		case !p.Terminating && !p.Unowned.IsZero():
			wait, look = fmt.Sprintf("nothing owns the proxy %q, so that nothing stops it; delete the pod", p.Name), now.Add(blockedRecheck)
		case !p.Terminating: // what is to stop it may be what no watch reports
			wait, look = cmp.Or(wait, "the proxies finish their requests"), now.Add(blockedRecheck)
		case p.Ready:
			wait = cmp.Or(wait, "the proxies finish their requests")
			continue
		case !now.Before(look):
			continue
		case now.Before(stop):
			look = stop
			wait = cmp.Or(wait, "the proxies finish their requests")
		default:
			wait = fmt.Sprintf("proxy %q was to stop by %s, and node %q does not say that it has; it is not waited for after %s",
				p.Name, stop.UTC().Format(time.TimeOnly+" UTC"), p.Node, look.UTC().Format(time.TimeOnly+" UTC"))
		}
		if left := look.Sub(now); again == 0 || left < again {
			again = left
		}
	}
	return wait, again
}

// deleteAll deletes in the reverse of the order in which the objects were made.
func deleteAll(objects []traffic.Object, why string) []kit.Action {
	var actions []kit.Action
	for _, object := range slices.Backward(objects) {
		if object.Condition != traffic.ObjectTerminating {
			actions = append(actions, Delete{Write{object, why}})
		}
	}
	return actions
}
