// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo"
	"github.com/serin-dev/serin/e2e/demo/story"
	"github.com/serin-dev/serin/e2e/demo/view"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The libraries would write into the picture; what matters is in the snapshots.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// flags are those of every command.
type flags struct {
	cluster cluster.Options
	plain   bool
	pull    bool
	kill    []string
}

func newCommand() *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:           "demo",
		Short:         "Watch Serin promote a good version and roll back a bad one",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	persistent := root.PersistentFlags()
	persistent.StringVar(&f.cluster.Kubeconfig, "kubeconfig", os.Getenv(cluster.KubeconfigVariable),
		"kubeconfig file of an existing cluster to use instead of a local one (or "+cluster.KubeconfigVariable+")")
	persistent.StringVar(&f.cluster.Context, "context", os.Getenv(cluster.ContextVariable),
		"context of an existing cluster to use instead of a local one (or "+cluster.ContextVariable+")")
	persistent.StringVar(&f.cluster.Dir, "dir", "", "folder of the local cluster (default .cache/cluster at the root of the checkout)")
	root.Flags().BoolVar(&f.plain, "plain", false, "write lines even on a terminal")
	root.Flags().BoolVar(&f.pull, "from-registry", false, "push the images to a registry with a password on this machine, and have the local cluster pull all of them")
	root.Flags().StringArrayVar(&f.kill, "kill", nil,
		"kill -9 a part of Serin at a moment, as TARGET@VERSION:MOMENT, such as manager@v2:promote; may be repeated.\n"+
			"Targets: manager, proxy. Versions: v2, v3. Moments: "+strings.Join(story.Moments(), ", "))
	root.AddCommand(&cobra.Command{
		Use: "down", Args: cobra.NoArgs, Short: "Remove the demo, and the local cluster with it",
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Remove(cmd.Context(), f.options(nil)) },
	})
	return root
}

func (f *flags) options(faults []story.Fault) demo.Options {
	return demo.Options{Cluster: f.cluster, Out: os.Stdout, Faults: faults, FromRegistry: f.pull, Within: demo.Within, Clock: clock.RealClock{}}
}

func run(ctx context.Context, f *flags) error {
	faults, err := parseFaults(f.kill)
	if err != nil {
		return err
	}
	d, err := demo.Prepare(ctx, f.options(faults))
	if err != nil {
		return err
	}
	summary, err := play(ctx, d, f.plain)
	if writeErr := view.WriteSummary(os.Stdout, summary, d.Next()); writeErr != nil {
		return writeErr
	}
	if err == nil && len(summary.Broken) > 0 {
		return errors.New("not everything was as promised")
	}
	return err
}

func parseFaults(texts []string) ([]story.Fault, error) {
	var faults []story.Fault
	for _, text := range texts {
		fault, err := story.ParseFault(text)
		if err != nil {
			return nil, fmt.Errorf("--kill: %w", err)
		}
		faults = append(faults, fault)
	}
	return faults, nil
}

// play shows the story as a picture on a terminal and as lines elsewhere.
func play(ctx context.Context, d *demo.Demo, plain bool) (story.Summary, error) {
	if plain || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return d.Play(ctx, view.NewPlain(os.Stdout))
	}
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	live := view.StartLive(context.WithoutCancel(ctx), os.Stdin, os.Stdout, func() { interrupt(errors.New("interrupted by the keyboard")) })
	summary, err := d.Play(ctx, live)
	return summary, errors.Join(err, live.Stop())
}
