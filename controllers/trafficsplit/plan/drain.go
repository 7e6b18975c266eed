// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// drainTime is how long the pods of a root Service stay among its endpoints, as
// terminating ones, after the cutover to the proxies. It is longer than clients of DNS, NTP or
// syslog wait for an answer.
const drainTime = 10 * time.Second

// drain keeps the pods of a root Service with a UDP port among its endpoints for a while
// after the cutover to the proxies, as pods do that are being replaced.
//
// kube-proxy forgets the sessions of UDP that go to what is no endpoint any more, and
// the answers with them that are on their way at that moment. Pods that merely leave keep
// their sessions, and get no new ones.
func drain(o Observation, d Decision) Decision {
	at := slices.IndexFunc(d.Actions, is[CutOver])
	if at >= 0 && datagrams(o) && len(o.Draining) == 0 {
		d.Actions = slices.Insert(d.Actions, at, kit.Action(Drain{Write{serviceObject(o.Root.Service), "its pods still answer requests that they have received"}}))
	}
	back := slices.IndexFunc(d.Actions, func(a kit.Action) bool { return is[RestoreRoot](a) || is[kit.RemoveFinalizer](a) })
	for _, object := range o.Draining {
		left := object.Created.Add(drainTime).Sub(o.Now)
		switch {
		case back >= 0: // they are its endpoints again, and must not be reported as terminating
			d.Actions = slices.Insert(d.Actions, back, kit.Action(Delete{Write{object, "its own pods get its traffic again"}}))
		case left <= 0:
			d.Actions = append(d.Actions, Delete{Write{object, "its pods have had time to answer"}})
		case d.After == 0 || left < d.After:
			d.After = left
		}
	}
	return d
}

func is[A kit.Action](a kit.Action) bool {
	_, ok := a.(A)
	return ok
}

// datagrams reports whether a port of the root Service is one of UDP.
func datagrams(o Observation) bool {
	return slices.ContainsFunc(o.Resolved.Ports, func(p traffic.Port) bool { return p.Protocol == traffic.ProtocolUDP })
}
