// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// A watch that breaks off begins with a list again, in which the Rollout still is.
func TestARolloutThatIsListedAgainIsNeverGone(t *testing.T) {
	one := &oneStore[*v1alpha1.Rollout]{mailbox: newMailbox()}
	again := []any{&v1alpha1.Rollout{}}
	if err := one.Replace(again, ""); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100_000 {
			_ = one.Replace(again, "")
		}
	}()
	for {
		if ro, _, _ := one.known(); ro == nil {
			t.Fatal("the page would say that it is gone")
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
