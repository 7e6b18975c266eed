// SPDX-License-Identifier: Apache-2.0

package notify

// gate bounds how many deliveries of a namespace run at once at each host, so that a
// slow host holds up its own ones only, and no other namespace's. A request without
// room waits at the gate, not in a slot, first come first served. The Sender's lock
// guards it.
type gate struct {
	limit int
	lanes map[string]*lane
}

type lane struct {
	running int
	waiting []*delivery
}

// enter reports whether the delivery may run now; it then has to leave. Otherwise
// it waits until next returns it.
func (g *gate) enter(d *delivery) bool {
	l := g.lanes[d.lane]
	if l == nil {
		l = &lane{}
		g.lanes[d.lane] = l
	}
	if l.running >= g.limit {
		l.waiting = append(l.waiting, d)
		return false
	}
	l.running++
	return true
}

// leave makes room.
func (g *gate) leave(d *delivery) {
	l := g.lanes[d.lane]
	l.running--
	if l.running == 0 && len(l.waiting) == 0 {
		delete(g.lanes, d.lane)
	}
}

// next takes the first delivery that waits in a lane with room; nil when there is
// none. A caller that gets one that does not run after all has to take the next.
func (g *gate) next(name string) *delivery {
	l := g.lanes[name]
	if l == nil || len(l.waiting) == 0 || l.running >= g.limit {
		return nil
	}
	d := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	if l.running == 0 && len(l.waiting) == 0 {
		delete(g.lanes, name)
	}
	return d
}
