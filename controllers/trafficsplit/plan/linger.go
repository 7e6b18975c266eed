// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/traffic"
)

// lingerTime is how long the pods of a root Service stay among its endpoints, as ones
// that leave, after the proxies have taken over. It is longer than clients of DNS, NTP or
// syslog wait for an answer.
const lingerTime = 10 * time.Second

// linger has the pods of a root Service with a UDP port stay among its endpoints for a
// while when the proxies take over, as pods do that are being replaced.
//
// kube-proxy forgets the sessions of UDP that go to what is no endpoint any more, and
// the answers with them that are on their way at that moment. Pods that merely leave keep
// their sessions, and get no new ones.
func linger(o Observation, d Decision) Decision {
	at := slices.IndexFunc(d.Actions, func(a Action) bool { return a.Type == TakeOver })
	if at >= 0 && o.datagrams() && len(o.Lingering) == 0 {
		d.Actions = slices.Insert(d.Actions, at, Action{
			Type: Linger, Object: serviceObject(o.Root.Service), Why: "its pods answer what they were sent",
		})
	}
	back := slices.IndexFunc(d.Actions, func(a Action) bool { return a.Type == GiveBack || a.Type == RemoveFinalizer })
	for _, object := range o.Lingering {
		left := object.Created.Add(lingerTime).Sub(o.Now)
		switch {
		case back >= 0: // they are its endpoints again, and must not be said to leave
			d.Actions = slices.Insert(d.Actions, back, Action{Type: Delete, Object: object, Why: "its pods take over from the proxies"})
		case left <= 0:
			d.Actions = append(d.Actions, Action{Type: Delete, Object: object, Why: "its pods have answered by now"})
		case d.RequeueAfter == 0 || left < d.RequeueAfter:
			d.RequeueAfter = left
		}
	}
	return d
}

// datagrams reports whether a port of the root Service is one of UDP.
func (o Observation) datagrams() bool {
	return slices.ContainsFunc(o.Resolved.Ports, func(p traffic.Port) bool { return p.Protocol == traffic.ProtocolUDP })
}
