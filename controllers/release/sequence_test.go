// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
)

type scenario struct {
	name string
	tell func(w *world)
}

// scenarios are whole releases. Each is kept as a golden log, which is
// also the documentation of the order of writes, and is run again with a crash of
// the operator before every single action.
var scenarios = []scenario{
	{"a good version is promoted", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
	}},
	{"a good version is promoted under the admission policy", func(w *world) {
		w.guard = true
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
	}},
	{"a bad version is rolled back and stays so until the template is set back", func(w *world) {
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
		w.run(60)
		w.setTemplate("v1")
		w.ready()
	}},
	{"a version whose pods never get ready is rolled back", func(w *world) {
		w.broken["v2"] = true
		w.ro.Spec.ProgressDeadline = "60s"
		w.ready()
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a newer version takes the place of a canary", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
		w.setTemplate("v3")
		w.run(2)
		w.ready()
	}},
	{"the template is set back during a canary", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 10", func() bool { return w.split != nil && w.split.observed == 10 })
		w.setTemplate("v1")
		w.run(2)
		w.ready()
	}},
	{"an earlier version is released again with its old ReplicaSet", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
		w.setTemplate("v1")
		w.run(2)
		w.ready()
	}},
	{"the Rollout is deleted in the middle of a canary", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
		w.remove()
		w.until("gone", func() bool { return w.gone })
	}},
	{"the Rollout is deleted when nothing is in progress", func(w *world) {
		w.ready()
		w.remove()
		w.until("gone", func() bool { return w.gone })
		w.run(2)
	}},
	{"the workload is scaled during a canary", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
		w.dep.replicas = 8
		w.run(2)
		w.ready()
	}},
	{"the canary's pods all go away while they get traffic", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
		w.broken["v2"] = true
		w.byRevision("sv2").available = 0
		w.until("rolled back", w.rolledBack)
	}},
	{"the canary's ReplicaSet is deleted while it gets traffic", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 50", func() bool { return w.split != nil && w.split.observed == 50 })
		w.rss = slices.DeleteFunc(w.rss, func(rs *replicaSet) bool { return rs.revision == "sv2" })
		w.say("user: deletes ReplicaSet website-sv2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a version is rolled out past Serin", func(w *world) {
		w.guard = true
		w.ready()
		w.dep.template = "v2" // written by an actor whom the policy does not see
		w.say("user: template v2, past the policy")
		w.deploymentController()
		w.run(2)
		w.ready()
	}},
	{"a Deployment without replicas changes without steps", func(w *world) {
		w.dep.replicas = 0
		w.ready()
		w.setTemplate("v2")
		w.run(2)
		w.ready()
		w.dep.replicas = 3
		w.run(2)
		w.ready()
	}},
	{"proxies refuse requests for a while, and the release goes on", func(w *world) {
		w.ready()
		w.setTemplate("v2")
		w.until("weight 10", func() bool { return w.split != nil && w.split.observed == 10 })
		w.refused = 20
		w.say("proxies: refuse requests")
		w.run(25)
		w.refused = 0
		w.say("proxies: refuse none any more")
		w.ready()
	}},
	{"proxies go on refusing requests, and the release is rolled back", func(w *world) {
		w.ready()
		w.refused = 20
		w.setTemplate("v2")
		w.until("rolled back", w.rolledBack)
	}},
}

func (w *world) remove() {
	now := metav1.NewTime(w.now)
	w.ro.DeletionTimestamp, w.rejected = &now, ""
	w.say("user: deletes the Rollout")
}

func (w *world) is(reason string) bool {
	for _, c := range w.ro.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Reason == reason
		}
	}
	return false
}

// ready waits until what Git says is stable.
func (w *world) ready() {
	w.t.Helper()
	w.until("ready", func() bool {
		r := w.newest()
		return w.is(v1alpha1.ReasonStable) && r != nil && w.ro.Status.Stable.Revision == r.revision
	})
}

func (w *world) rolledBack() bool { return w.is(v1alpha1.ReasonRolledBack) }

// golden is the file of a scenario's log.
func (s scenario) golden() string {
	return filepath.Join("testdata", strings.ReplaceAll(s.name, " ", "-")+".log")
}

func TestEveryGoldenLogHasAScenario(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.golden() == file }) {
			t.Errorf("%s: no scenario writes it; delete it", file)
		}
	}
}

func TestWholeReleasesFollowTheGoldenLogs(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			s.tell(w)
			w.checkQuiet()
			golden.Check(t, s.golden(), strings.Join(w.log, "\n")+"\n")
		})
	}
}

// TestMain lets garbage pile up: a simulated release leaves nothing else.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// TestDecideIsAPureFunction: the shell's cache is shared, and a decision that depends on
// more than what was observed, as on the order of a map, can't be relied on.
func TestDecideIsAPureFunction(t *testing.T) {
	for _, s := range scenarios {
		w := newWorld(t)
		w.watch = true
		s.tell(w)
	}
}

func TestACrashBeforeAnyActionEndsTheSame(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			undisturbed := newWorld(t)
			s.tell(undisturbed)
			for crash := 1; crash <= undisturbed.acted; crash++ {
				t.Run(strconv.Itoa(crash), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.crashAt = crash
					s.tell(w)
					w.checkQuiet()
					if diff := cmp.Diff(undisturbed.end(), w.end()); diff != "" {
						t.Errorf("another end after a crash (-undisturbed +crashed):\n%s\n%s", diff, w.tail())
					}
				})
			}
		})
	}
}
