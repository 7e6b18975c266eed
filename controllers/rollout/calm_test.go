// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release"
)

func TestAnObjectIsCalmWhenItHasLookedTheSameForAWhile(t *testing.T) {
	type look struct {
		after   time.Duration
		version string
		want    bool
	}
	const ms = time.Millisecond
	busy := []look{}
	for at := time.Duration(0); at < calmAtMost; at += 50 * ms {
		busy = append(busy, look{at, at.String(), false})
	}
	for name, looks := range map[string][]look{
		"at the second look":               {{0, "1", false}, {calmFor - ms, "1", false}, {calmFor, "1", true}},
		"since its last change":            {{0, "1", false}, {90 * ms, "2", false}, {150 * ms, "2", false}, {190 * ms, "2", true}},
		"anew when it is waited for again": {{0, "1", false}, {calmFor, "1", true}, {calmFor + ms, "1", false}},
		"at last when it never rests":      append(busy, look{calmAtMost, "x", true}),
	} {
		t.Run(name, func(t *testing.T) {
			var c calms
			for _, l := range looks {
				if got := c.calm("uid", l.version, time.Unix(0, 0).Add(l.after)); got != l.want {
					t.Fatalf("after %s, version %s: calm %v, want %v", l.after, l.version, got, l.want)
				}
			}
		})
	}
}

func TestWhatIsNotWaitedForIsForgotten(t *testing.T) {
	var c calms
	for _, uid := range []types.UID{"a", "b", "c"} {
		c.calm(uid, "1", time.Unix(0, 0))
	}
	c.calm("a", "1", time.Unix(1, 0))
	c.forget("b")
	if len(c.seen) != 1 {
		t.Errorf("remembers %v", c.seen)
	}
}

func TestADeploymentIsNotUnpausedWhileItsControllerIsAtWork(t *testing.T) {
	r, c, writes := newReconciler(t, func(string) error { return nil })
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	r.options.Clock = clock
	d := &appsv1.Deployment{}
	if err := c.Get(t.Context(), request.NamespacedName, d); err != nil {
		t.Fatal(err)
	}
	unpause := func() error {
		s := scene{deployment: d.DeepCopy()}
		s.Now = clock.Now()
		s.deployment.Spec.Paused = true
		s.Rollout = rolloutOf(t, c)
		return r.apply(t.Context(), s, release.SetPaused{Paused: false})
	}
	written := func() bool {
		return slices.ContainsFunc(*writes, func(w string) bool { return strings.HasPrefix(w, "apply Deployment") })
	}
	for range 3 {
		result, err := shell.Retry(unpause())
		if err != nil || result.RequeueAfter != shell.ConflictPause || written() {
			t.Fatalf("result %+v, error %v, written %v: it has to wait and to say nothing", result, err, *writes)
		}
		clock.Step(calmFor / 2)
		d.ResourceVersion += "0" // the status is written
	}
	if _, err := shell.Retry(unpause()); err != nil || written() {
		t.Fatalf("error %v, written %v", err, *writes)
	}
	clock.Step(calmFor)
	// The fake API server does not know the version that was made up, so that the
	// write fails: that it is tried is what matters here.
	if err := unpause(); !written() {
		t.Errorf("error %v, written %v", err, *writes)
	}
}

func rolloutOf(t *testing.T, c client.Client) *v1alpha1.Rollout {
	t.Helper()
	ro := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
		t.Fatal(err)
	}
	return ro
}
