// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"math/rand/v2"
	"sync"
	"time"
)

// warm is the number of connections that are kept for reuse. They are used in
// turn, so that each one is idle for a while between two requests, as the
// connections of real users are.
const warm = 20

// pool hands out sessions: mostly kept ones, sometimes a new one for one request.
type pool struct {
	config Config
	mu     sync.Mutex
	random *rand.Rand
	idle   []*session
	// kept are all sessions that are used more than once, by when they were made.
	kept map[*session]time.Time
}

func newPool(config Config, random *rand.Rand) *pool {
	return &pool{config: config, random: random, kept: map[*session]time.Time{}}
}

// take returns a session that nobody else uses.
func (p *pool) take(now time.Time) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random.IntN(100) < p.config.FreshPercent {
		return newSession(1)
	}
	if len(p.idle) < warm {
		s := newSession(p.config.MinLife + p.random.IntN(p.config.MaxLife-p.config.MinLife+1))
		p.kept[s] = now
		return s
	}
	s := p.idle[0]
	p.idle = p.idle[1:]
	return s
}

// give takes a session back. One that has served its life is closed, and so is
// one that slow answers made too many of.
func (p *pool) give(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.left <= 0 || len(p.idle) >= 2*warm {
		s.close()
		delete(p.kept, s)
		return
	}
	p.idle = append(p.idle, s)
}

// oldest is when the oldest session was made that is still used, zero without any.
func (p *pool) oldest() (oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, made := range p.kept {
		if oldest.IsZero() || made.Before(oldest) {
			oldest = made
		}
	}
	return oldest
}

// close ends every idle connection.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		s.close()
	}
	p.idle = nil
}
