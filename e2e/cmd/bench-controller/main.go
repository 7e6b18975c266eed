// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := bench.Options{Out: os.Stderr, Clock: clock.RealClock{}}
	var router, requests string
	var replicas int32
	cmd := &cobra.Command{
		Use:           "bench-controller",
		Short:         "Measure what releases cost a cluster",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Router = v1alpha1.RouterName(router)
			if replicas > 0 {
				o.Replicas = func(int) int32 { return replicas }
			}
			return run(cmd.Context(), o, requests)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&o.Sizes, "sizes", []int{1, 100, 1000}, "how many releases run at once, one measurement each")
	flags.IntVar(&o.Idle, "idle", 5000, "how many Rollouts do nothing; 0 for no such measurement")
	flags.DurationVar(&o.IdleFor, "idle-for", 2*time.Minute, "how long they are watched")
	flags.IntVar(&o.Deployments, "deployments", 0, "how many Deployments without a Rollout the operator reads at its start; 0 for no such measurement")
	flags.IntVar(&o.Old, "old-replicasets", 10, "how many ReplicaSets of earlier templates each of these has")
	flags.StringVar(&router, "router", string(v1alpha1.RouterNone), "router of the Rollouts: none, smi, or nginx with stand-ins for its proxies")
	flags.Int32Var(&replicas, "replicas", 0, "pods of each Deployment; 0 for 10 where few are released and 2 from 500 on")
	flags.DurationVar(&o.Hold, "hold", 10*time.Second, "how long each weight is held")
	flags.StringArrayVar(&o.ManagerArgs, "manager-arg", nil, "flag of the operator beside those that the chart gives it; may be repeated")
	flags.StringVar(&requests, "requests", "", "file for every request of the operator during releases")
	flags.IntVar(&o.PerNamespace, "per-namespace", 50, "how many Rollouts share a namespace")
	return cmd
}

func run(ctx context.Context, o bench.Options, requests string) error {
	if requests != "" {
		f, err := os.Create(requests)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // what is not in the file is missed by nobody else
		o.Requests = f
	}
	report, err := bench.Run(ctx, o)
	fmt.Printf("%d processors, %s, %s/%s\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	report.Write(os.Stdout)
	return err
}
