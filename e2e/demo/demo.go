// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/demo/story"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// Within is how long the story may take once everything is built.
const Within = 4 * time.Minute

// Options say how the demo is run.
type Options struct {
	// Cluster is where it runs.
	Cluster cluster.Options
	// Out is told what is built and started.
	Out io.Writer
	// Faults are injected into the story.
	Faults []story.Fault
	// FromRegistry has all images pulled from a registry with a password on this machine.
	FromRegistry bool
	// Within is how long the story may take, 0 for any time.
	Within time.Duration
	// Installed tells that Serin is on the cluster already, and stays there.
	Installed bool
	// Clock tells the time.
	Clock clock.Clock
}

// Demo is a cluster on which the story can be played.
type Demo struct {
	// Cluster that was started or found.
	Cluster *cluster.Cluster

	options  Options
	root     string
	examples stage.Examples
	pull     *stage.Pull
}

// Prepare makes the cluster run and puts the images into it. The error matches
// cluster.ErrNotPossible where no cluster can run on this machine.
func Prepare(ctx context.Context, options Options) (*Demo, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	options.Cluster.Out = options.Out
	c, err := cluster.Up(ctx, options.Cluster)
	if err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	d, err := On(c, options)
	if err != nil {
		return nil, err
	}
	if options.FromRegistry {
		d.pull, err = Push(ctx, c, options.Out, images.Table...)
		return d, err
	}
	if err := images.Load(ctx, images.NewBuilder(checkout, options.Out), c, images.Table...); err != nil {
		return nil, fmt.Errorf("put the images into the cluster: %w", err)
	}
	return d, nil
}

// On returns the demo on a cluster that runs, and that has the images.
func On(c *cluster.Cluster, options Options) (*Demo, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	examples, err := stage.ReadExamples(filepath.Join(checkout.Root, "examples", "demo"))
	if err != nil {
		return nil, err
	}
	return &Demo{Cluster: c, options: options, root: checkout.Root, examples: examples}, nil
}

// Play removes what an earlier run left and plays the story. The summary is
// complete up to the error, which says what part of the story was not reached. The demo stays,
// for people to look at, until Clean.
func (d *Demo) Play(ctx context.Context, view story.View) (story.Summary, error) {
	s, err := d.open(view.Say)
	if err != nil {
		return story.Summary{}, err
	}
	if err := s.Clean(ctx); err != nil {
		return story.Summary{}, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	play := &story.Story{Scenes: story.Scenes(d.examples.Replicas), Stage: s, Observer: s, View: view, Faults: d.options.Faults}
	account, err := play.Run(ctx)
	return story.Summarise(account, d.promises()), err
}

// Clean removes the demo, and Serin unless it was there already.
func (d *Demo) Clean(ctx context.Context) error {
	s, err := d.open(func(line string) { fmt.Fprintln(d.options.Out, line) })
	if err != nil {
		return err
	}
	return s.Clean(ctx)
}

func (d *Demo) promises() story.Promises {
	within := d.options.Within
	if len(d.options.Faults) > 0 {
		within = 0 // what is killed takes its time to come back
	}
	return story.Promises{
		Replicas: d.examples.Replicas,
		Steps:    d.examples.Steps,
		Within:   within,
		ProxyKilled: slices.ContainsFunc(d.options.Faults, func(f story.Fault) bool {
			return f.Target == story.TargetProxy
		}),
	}
}

func (d *Demo) open(say func(string)) (*stage.Stage, error) {
	s, err := stage.New(stage.Options{
		Kubeconfig: d.Cluster.Kubeconfig, Context: d.Cluster.Context,
		Kubectl: d.Cluster.Kubectl, Helm: d.Cluster.Helm,
		Root: d.root, Installed: d.options.Installed, Say: say, Clock: d.options.Clock,
	})
	if err == nil && d.pull != nil {
		s.PullFrom(*d.pull)
	}
	return s, err
}

// Next are the commands that a person may type after the story.
func (d *Demo) Next() []string {
	var commands []string
	if d.Cluster.Local {
		commands = append(commands, fmt.Sprintf("export KUBECONFIG=%s PATH=%s:$PATH", d.Cluster.Kubeconfig, d.Cluster.Tools))
	}
	return append(commands,
		"kubectl -n "+stage.Namespace+" get rollouts.serin.dev",
		"kubectl -n "+stage.Namespace+" describe rollouts.serin.dev "+stage.Name,
		"go run ./cmd/kubectl-traffic -n "+stage.Namespace+" dashboard "+stage.Name+"   # the release in the browser",
		"kubectl apply -f examples/demo/website-v2.yaml   # take v3 back: healthy at once",
		"make demo-down                                    # remove everything",
	)
}

// Remove takes the demo away: with its cluster where that was started here, else
// from the cluster that was named.
func Remove(ctx context.Context, options Options) error {
	options.Cluster.Out = options.Out
	if !options.Cluster.Existing() {
		return cluster.Down(ctx, options.Cluster)
	}
	c, err := cluster.Up(ctx, options.Cluster)
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	d := &Demo{Cluster: c, options: options}
	return d.Clean(ctx)
}
