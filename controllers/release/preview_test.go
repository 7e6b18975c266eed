// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/state"
)

// fakePreview is the preview Service of the user.
type fakePreview struct {
	// revision that its selector is narrowed to; "" for none.
	revision string
	since    time.Time
	// endpoints is the revision that its endpoints are of by now.
	endpoints string
	version   int
	problem   string
}

// previews has the Rollout name a preview Service.
func (w *world) previews() {
	w.preview = &fakePreview{version: 1}
	w.ro.Spec.Strategy.BlueGreen.PreviewService = "website-preview"
}

func (w *world) observePreview(o *state.Observation) {
	p, b := w.preview, w.ro.Spec.Strategy.BlueGreen
	if b != nil && b.PreviewService != "" {
		o.Preview.Presence = kit.Absent
	}
	if p == nil {
		return
	}
	object := kit.Object{Name: "website-preview", UID: "preview", ResourceVersion: strconv.Itoa(p.version)}
	switch {
	case b != nil && b.PreviewService != "":
		o.Preview = state.Preview{
			Object: object, Presence: kit.Present, Problem: p.problem, Revision: p.revision, Since: p.since,
			Confirmed: p.revision != "" && p.endpoints == p.revision,
		}
	case p.revision != "":
		o.StalePreviews = []kit.Object{object}
	}
}

func (w *world) pointPreview(a state.PointPreview) bool {
	p := w.preview
	if p == nil || strconv.Itoa(p.version) != a.ResourceVersion {
		return false
	}
	p.revision, p.since = a.Revision, w.now
	p.version++
	w.dirty = true
	return true
}

// checkPreview: the preview Service never leads to pods of two versions, and to none at all
// only where there are none.
func (w *world) checkPreview() {
	w.t.Helper()
	p := w.preview
	if p == nil || w.ro.Spec.Strategy.BlueGreen.PreviewService == "" || w.lost {
		return
	}
	for _, rs := range w.rss {
		if rs.owner == kit.OwnerSerin && rs.existing > 0 && p.revision == "" {
			w.t.Fatalf("P1: pods of canary %s while the preview Service selects all\n%s", rs.revision, w.tail())
		}
	}
	if p.revision == "" || w.dep.replicas == 0 || w.scaledFromZero() {
		return
	}
	if rs := w.byRevision(p.revision); rs == nil || rs.existing == 0 {
		w.t.Fatalf("P2: the preview Service leads to %s, which has no pods\n%s", p.revision, w.tail())
	}
}

// checkPreviewRestored: where nothing is released, its selector is what its owner declares.
func (w *world) checkPreviewRestored() {
	w.t.Helper()
	if w.preview != nil && w.preview.revision != "" {
		w.t.Fatalf("P3: the preview Service is left at %s\n%s", w.preview.revision, w.tail())
	}
}

func blueGreenWithPreview(w *world) {
	w.ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, ScaleDownDelay: "60s"}}
	w.previews()
	w.ready()
}

func TestThePreviewServiceLeadsToTheCanaryOnlyWhileItIsTried(t *testing.T) {
	for _, router := range []v1alpha1.RouterName{v1alpha1.RouterNginx, v1alpha1.RouterNone} {
		t.Run(string(router), func(t *testing.T) {
			w := newWorld(t)
			w.ro.Spec.Router = router
			blueGreenWithPreview(w)
			w.checkPreviewRestored()
			w.setTemplate("v2")
			w.until("a canary", func() bool { return w.byRevision("sv2") != nil })
			if w.preview.revision != "kv1" {
				t.Errorf("before its pods: %q", w.preview.revision)
			}
			w.untilReason(v1alpha1.ReasonWaitingForApproval)
			if w.preview.revision != "sv2" {
				t.Errorf("while it is tried: %q", w.preview.revision)
			}
			w.control(v1alpha1.ControlPromote, "sv2")
			w.until("all traffic", func() bool { return w.split.observed == 100 })
			if w.preview.revision != "sv2" {
				t.Errorf("after the switch: %q", w.preview.revision)
			}
			w.ready()
			w.checkPreviewRestored()
			w.checkQuiet()
		})
	}
}

func TestThePreviewServiceLeadsToStableBeforeTheCanarysPodsGo(t *testing.T) {
	tests := map[string]func(*world){
		"aborted":    func(w *world) { w.control(v1alpha1.ControlAbort, "sv2") },
		"superseded": func(w *world) { w.setTemplate("v3") },
		"set back":   func(w *world) { w.setTemplate("v1") },
		"deleted":    func(w *world) { w.remove() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			blueGreenWithPreview(w)
			w.setTemplate("v2")
			w.untilReason(v1alpha1.ReasonWaitingForApproval)
			end(w)
			w.until("stable again", func() bool { return w.preview.revision == "kv1" })
			if rs := w.byRevision("sv2"); rs == nil || rs.existing != 4 {
				t.Errorf("pods of the canary went first: %+v", rs)
			}
			if name == "superseded" {
				w.until("the next one is tried", func() bool { return w.preview.revision == "sv3" })
				return
			}
			w.run(60)
			w.checkPreviewRestored()
		})
	}
}

func TestTheNewVersionIsTriedWhenThePreviewServiceLeadsToIt(t *testing.T) {
	w := newWorld(t)
	blueGreenWithPreview(w)
	w.setTemplate("v2")
	w.until("pointed at the canary", func() bool { return w.preview.revision == "sv2" })
	at := w.now
	w.untilReason(v1alpha1.ReasonWaitingForApproval)
	if took := w.now.Sub(at); took < deployment.PreviewSettle {
		t.Errorf("tests could begin %s after the selector was changed", took)
	}
}

func TestAPreviewServiceThatNeverFollowsEndsTheRelease(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.ProgressDeadline = "90s"
	blueGreenWithPreview(w)
	w.stuck = true
	w.setTemplate("v2")
	w.until("rolled back", w.rolledBack)
	if m := readyMessage(w.ro); !strings.Contains(m, "preview Service") {
		t.Errorf("it says %q", m)
	}
	w.run(60)
	w.checkPreviewRestored()
}

func TestAnotherActorsEditOfThePreviewServiceIsPutBack(t *testing.T) {
	w := newWorld(t)
	blueGreenWithPreview(w)
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForApproval)
	w.preview.revision, w.preview.version, w.dirty = "", w.preview.version+1, true
	w.until("the key is back", func() bool { return w.preview.revision == "sv2" })
	if !w.is(v1alpha1.ReasonWaitingForApproval) {
		t.Errorf("it waits for %s", readyMessage(w.ro))
	}
}

func TestAPreviewServiceThatCannotBeOneIsRefusedByItsField(t *testing.T) {
	tests := map[string]struct {
		change func(*world)
		want   string
	}{
		"it does not exist": {func(w *world) { w.preview = nil }, `spec.strategy.blueGreen.previewService: the Service "website-preview" does not exist in this namespace; create it, or remove the field.`},
		"it selects others": {func(w *world) { w.preview.problem = "it selects others" }, "spec.strategy.blueGreen.previewService: it selects others."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			blueGreenWithPreview(w)
			test.change(w)
			w.setTemplate("v2")
			w.run(60)
			if !w.is(v1alpha1.ReasonInvalidService) || !strings.Contains(readyMessage(w.ro), test.want) {
				t.Errorf("it says %q", readyMessage(w.ro))
			}
			if w.byRevision("sv2") != nil {
				t.Error("a canary exists")
			}
		})
	}
}

func TestAPreviewServiceThatIsNotNamedAnyMoreIsRestored(t *testing.T) {
	w := newWorld(t)
	blueGreenWithPreview(w)
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForApproval)
	w.edit("no preview Service", func(s *v1alpha1.RolloutSpec) {
		b := *s.Strategy.BlueGreen
		b.PreviewService = ""
		s.Strategy.BlueGreen = &b
	})
	w.run(2)
	w.checkPreviewRestored()
	if !w.is(v1alpha1.ReasonWaitingForApproval) {
		t.Errorf("it waits for %s", readyMessage(w.ro))
	}
}

func TestTheFinalizerGoesAfterThePreviewServiceIsRestored(t *testing.T) {
	w := newWorld(t)
	blueGreenWithPreview(w)
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonWaitingForApproval)
	w.log = nil
	w.remove()
	w.until("gone", func() bool { return w.gone })
	restored := slices.IndexFunc(w.log, func(s string) bool { return strings.Contains(s, "restore the selector of the preview Service") })
	finalizer := slices.IndexFunc(w.log, func(s string) bool { return strings.Contains(s, "remove the finalizer") })
	if restored < 0 || finalizer < restored {
		t.Errorf("restored at %d, let go at %d\n%s", restored, finalizer, strings.Join(w.log, "\n"))
	}
}
