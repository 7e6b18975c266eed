// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// claims are those of a test, which notes who was told that its turn has come.
type claims struct {
	*Slots
	t     *testing.T
	ready map[string]int
}

func newClaims(t *testing.T, limits Limits) *claims {
	t.Helper()
	return &claims{Slots: NewSlots(limits), t: t, ready: map[string]int{}}
}

// acquire waits for a slot.
func acquire(ctx context.Context, s *Slots, namespace string) (context.Context, func(), error) {
	woken := make(chan struct{}, 1)
	key := fmt.Sprintf("%p", woken)
	for ctx.Err() == nil {
		held, release, err := s.Claim(ctx, namespace, key, func() { woken <- struct{}{} })
		if err == nil {
			return held, release, nil
		}
		select {
		case <-woken:
		case <-ctx.Done():
			s.Drop(key)
		}
	}
	return nil, nil, ctx.Err()
}

// claim for a key that is its namespace too; nil when its turn has not come.
func (c *claims) claim(key string) (held context.Context, release func()) {
	c.t.Helper()
	held, release, err := c.Claim(c.t.Context(), key, key, func() { c.ready[key]++ })
	if err != nil && (!errors.Is(err, ErrBusy) || release != nil) {
		c.t.Fatal(err)
	}
	return held, release
}

// must have its turn.
func (c *claims) must(key string) (held context.Context, release func()) {
	c.t.Helper()
	held, release = c.claim(key)
	if release == nil {
		c.t.Fatalf("%s does not have its turn", key)
	}
	return held, release
}

// waits reports an error unless a key waits.
func (c *claims) waits(key string) {
	c.t.Helper()
	if _, release := c.claim(key); release != nil {
		c.t.Fatalf("%s has a turn", key)
	}
}

func (c *claims) wantNothingLeft() {
	c.t.Helper()
	if loads := c.Loads(); len(loads)+len(c.places) != 0 {
		c.t.Errorf("%v and %v are left", loads, c.places)
	}
}

func TestWhoComesAgainKeepsItsPlace(t *testing.T) {
	c := newClaims(t, Limits{Slots: 1})
	_, first := c.must("a")
	for _, key := range []string{"b", "c", "c", "b"} {
		c.waits(key)
	}
	first()
	if c.ready["b"] != 1 || c.ready["c"] != 0 || c.ready["a"] != 0 {
		t.Errorf("they are told %v", c.ready)
	}
	c.waits("c")
	_, second := c.must("b")
	second()
	_, third := c.must("c")
	if c.ready["b"] != 1 || c.ready["c"] != 1 {
		t.Errorf("they are told %v", c.ready)
	}
	third()
	c.wantNothingLeft()
}

func TestAPlaceThatIsGivenUpIsTheNexts(t *testing.T) {
	c := newClaims(t, Limits{Slots: 1})
	_, first := c.must("a")
	c.waits("b")
	c.waits("c")
	c.Drop("b")
	c.Drop("unknown")
	first()
	if c.ready["b"] != 0 || c.ready["c"] != 1 {
		t.Errorf("they are told %v", c.ready)
	}
	c.waits("d")
	c.Drop("c") // it has its turn, and does not want it any more
	_, last := c.must("d")
	last()
	c.wantNothingLeft()
}

func TestATurnThatIsNotClaimedIsTheNexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClaims(t, Limits{Slots: 1})
		_, first := c.must("a")
		c.waits("b")
		c.waits("c")
		first()
		time.Sleep(claimWithin - time.Second)
		c.waits("c")
		time.Sleep(time.Second)
		synctest.Wait()
		c.waits("b")
		_, release := c.must("c")
		time.Sleep(time.Hour) // what is claimed does not lapse
		synctest.Wait()
		c.waits("b")
		release()
		_, release = c.must("b")
		release()
		time.Sleep(claimWithin)
		synctest.Wait()
		c.wantNothingLeft()
	})
}

func TestATaskThatWasClaimedIsRecalledAfterItsTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = 10 * time.Minute
		c := newClaims(t, Limits{Slots: 1, Keep: keep})
		held, first := c.must("a")
		c.waits("b")
		time.Sleep(keep - time.Second)
		synctest.Wait()
		if held.Err() != nil {
			t.Error("it is recalled too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := context.Cause(held); !errors.Is(got, ErrRecalled) {
			t.Errorf("it ends by %v", got)
		}
		first()
		held, second := c.must("b")
		time.Sleep(time.Hour)
		synctest.Wait()
		if held.Err() != nil {
			t.Error("it is recalled although none waits")
		}
		second()
		if held.Err() == nil {
			t.Error("the context goes on after the end")
		}
		c.wantNothingLeft()
	})
}

// Two namespaces have a slot each of three, and each wants another one: as one task ends, both
// may have one.
func TestOneTaskThatEndsCanMakeRoomForTwo(t *testing.T) {
	c := newClaims(t, Limits{Slots: 3, Keep: time.Hour})
	claim := func(namespace, key string) (release func()) {
		_, release, err := c.Claim(t.Context(), namespace, key, func() { c.ready[key]++ })
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
		return release
	}
	end := claim("a", "a1")
	if end == nil || claim("b", "b1") == nil || claim("a", "a2") != nil || claim("b", "b2") != nil {
		t.Fatal("it is not as in the fixture")
	}
	if got, want := c.Loads()["a"], (Load{Held: 1, Waiting: 1}); got != want {
		t.Errorf("the load is %+v", got)
	}
	end()
	if c.ready["a2"] != 1 || c.ready["b2"] != 1 {
		t.Errorf("they are told %v", c.ready)
	}
}

func TestWhatIsDoneWithoutWaitingFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClaims(t, Limits{Slots: 1})
		done := 0
		for range 3 {
			c.Go("a", func() { done++ })
		}
		synctest.Wait()
		if done != 3 {
			t.Errorf("%d of 3 were done", done)
		}
		c.wantNothingLeft()
	})
}
