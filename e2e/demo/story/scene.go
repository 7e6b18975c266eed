// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// The versions of the website.
const (
	// First is what runs before Serin has anything to do.
	First = "v1"
	// Good is promoted.
	Good = "v2"
	// Bad fails now and then and is rolled back.
	Bad = "v3"
)

// Stage is what the story does to a cluster.
type Stage interface {
	// Install puts Serin on the cluster.
	Install(ctx context.Context) error
	// Apply applies a manifest of the examples by its file name, as Git would.
	Apply(ctx context.Context, file string) error
	// Kill ends a part of Serin as a crash would.
	Kill(ctx context.Context, target Target) error
}

// Scene is one part of the story.
type Scene struct {
	// Title says for people what happens.
	Title string
	// Version is the one that is released in the scene, "" for none.
	Version string
	// Do begins the scene.
	Do func(ctx context.Context, stage Stage) error
	// Done tells whether the scene has reached its end.
	Done func(a *Account) bool
	// Lost says, when the scene can't reach its end any more, why; nil means never.
	Lost func(a *Account) string
	// Within is how long the scene may take.
	Within time.Duration
}

// Scenes returns the whole story. The website has the given number of replicas.
func Scenes(replicas int) []Scene {
	return []Scene{
		{
			Title:  "Install Serin",
			Do:     func(ctx context.Context, stage Stage) error { return stage.Install(ctx) },
			Done:   func(*Account) bool { return true },
			Within: 2 * time.Minute,
		},
		{
			Title:   "Deploy v1 with its Service and a Rollout",
			Version: First,
			Do:      apply("namespace.yaml", "website.yaml", "rollout.yaml"),
			Done:    func(a *Account) bool { return deployed(a, replicas) },
			Within:  2 * time.Minute,
		},
		{
			Title:  "Send traffic",
			Do:     apply("load.yaml"),
			Done:   flowing,
			Within: time.Minute,
		},
		{
			Title:   "Apply v2, a good version",
			Version: Good,
			Do:      apply("website-v2.yaml"),
			Done:    func(a *Account) bool { return promoted(a, Good, replicas) },
			Lost:    func(a *Account) string { return lost(a, Good, serinv1alpha1.OutcomePromoted) },
			Within:  3 * time.Minute,
		},
		{
			Title:   "Apply v3, which fails 5 % of its answers",
			Version: Bad,
			Do:      apply("website-v3.yaml"),
			Done:    func(a *Account) bool { return rolledBack(a, Bad) },
			Lost:    func(a *Account) string { return lost(a, Bad, serinv1alpha1.OutcomeRolledBack) },
			Within:  3 * time.Minute,
		},
		{
			Title:  "See that traffic goes on",
			Do:     func(context.Context, Stage) error { return nil },
			Done:   quiet,
			Within: time.Minute,
		},
	}
}

// apply returns what applies files in order.
func apply(files ...string) func(context.Context, Stage) error {
	return func(ctx context.Context, stage Stage) error {
		for _, file := range files {
			if err := stage.Apply(ctx, file); err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
		}
		return nil
	}
}

// deployed: the Rollout is Ready and every pod runs v1.
func deployed(a *Account, replicas int) bool {
	return a.Last.Ready().Status == metav1.ConditionTrue && a.Last.only(First) && a.Last.ready(First) == replicas
}

// enough is the number of answers that shows that traffic flows.
const enough = 200

// flowing: requests are answered.
func flowing(a *Account) bool {
	return a.Last.load().Version(First).Requests >= enough
}

// promoted: the version was promoted, every pod runs it, nothing of Serin is left
// in the path and nothing is left to do.
func promoted(a *Account, version string, replicas int) bool {
	outcome := a.Release(version).Outcome
	return outcome != nil && outcome.Outcome == serinv1alpha1.OutcomePromoted &&
		a.Last.Ready().Status == metav1.ConditionTrue && !a.Last.InPath() &&
		a.Last.only(version) && a.Last.ready(version) == replicas
}

// rolledBack: the version was rolled back, its pods are gone, nothing of Serin is
// left in the path and the workload is held until its template changes.
func rolledBack(a *Account, version string) bool {
	outcome := a.Release(version).Outcome
	if outcome == nil || outcome.Outcome != serinv1alpha1.OutcomeRolledBack || a.Last.InPath() {
		return false
	}
	for _, pod := range a.Last.Pods {
		if pod.Version == version && !pod.Going {
			return false
		}
	}
	return a.Last.Ready().Reason == serinv1alpha1.ReasonRolledBack
}

// lost says that a release ended in another way than it should.
func lost(a *Account, version, want string) string {
	outcome := a.Release(version).Outcome
	if outcome == nil || outcome.Outcome == want {
		return ""
	}
	return fmt.Sprintf("%s ended as %s: %s", version, outcome.Outcome, outcome.Message)
}

// calm is how long traffic is watched after the last change.
const calm = 5 * time.Second

// quiet: the load generator reported some time after the last release was over.
func quiet(a *Account) bool {
	return !a.current().SettledAt.IsZero() && a.Last.load().Time.Sub(a.current().SettledAt) >= calm
}
