// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/gateway"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// newCommand is the command line.
func newCommand() *cobra.Command {
	options := cluster.Options{Out: os.Stderr}
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes on this machine, without a registry",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "kubeconfig file of an existing cluster to use instead (or "+cluster.KubeconfigVariable+")")
	flags.StringVar(&options.Context, "context", "", "context of an existing cluster to use instead (or "+cluster.ContextVariable+")")
	flags.StringVar(&options.Dir, "dir", "", "folder of the local cluster (default .cache/cluster at the root of the checkout)")
	root.AddCommand(newUp(&options), newDown(&options), newStatus(&options), newKubeconfig(&options), newLoadImages(&options), newGateway(&options), newBuild(&options))
	return root
}

func newUp(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "up", Args: cobra.NoArgs, Short: "Start the cluster, repair it, or find it running",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Up(cmd.Context(), *options)
			if err != nil {
				return err
			}
			if c.Local {
				fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s PATH=%s:$PATH\n", c.Kubeconfig, c.Tools)
			}
			return nil
		},
	}
}

func newDown(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "down", Args: cobra.NoArgs, Short: "Remove the cluster; compiled programs and images stay",
		RunE: func(cmd *cobra.Command, _ []string) error { return cluster.Down(cmd.Context(), *options) },
	}
}

func newStatus(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Show the programs of the cluster",
		RunE: func(cmd *cobra.Command, _ []string) error {
			statuses, err := cluster.Status(*options)
			if err != nil {
				return err
			}
			if len(statuses) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "there is no local cluster")
				return nil
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "PROGRAM\tPID\tSTATE\tLOG")
			for _, status := range statuses {
				state := "stopped"
				if status.Running {
					state = "running"
				}
				fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", status.Name, status.PID, state, status.Log)
			}
			return table.Flush()
		},
	}
}

func newKubeconfig(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Args: cobra.NoArgs, Short: "Print the path of the administrator's kubeconfig file",
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := cluster.KubeconfigPath(*options)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}

func newLoadImages(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "load-images", Args: cobra.NoArgs, Short: "Build the images and put them into the cluster",
		Long: "Build the images of Serin and of its demo and put those into the cluster that it does not have.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Up(cmd.Context(), *options)
			if err != nil {
				return err
			}
			checkout, err := tools.Locate()
			if err != nil {
				return err
			}
			return images.Load(cmd.Context(), images.NewBuilder(checkout, options.Out), c, images.Table...)
		},
	}
}

func newGateway(options *cluster.Options) *cobra.Command {
	remove := false
	command := &cobra.Command{
		Use: "gateway", Args: cobra.NoArgs, Short: "Put Traefik, a gateway of the Gateway API, into the cluster",
		Long: "Put Traefik, a gateway of the Gateway API, and the API's kinds into the cluster. The first time it is built, which takes about ten minutes.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Up(cmd.Context(), *options)
			if err != nil {
				return err
			}
			checkout, err := tools.Locate()
			if err != nil {
				return err
			}
			g := gateway.Gateway{Cluster: c, Checkout: checkout, Out: options.Out}
			if remove {
				return g.Remove(cmd.Context())
			}
			return g.Install(cmd.Context())
		},
	}
	command.Flags().BoolVar(&remove, "remove", false, "take it away again, with the kinds and every route")
	return command
}

func newBuild(options *cluster.Options) *cobra.Command {
	return &cobra.Command{
		Use: "build", Args: cobra.NoArgs, Short: "Build the programs of the cluster, and those that it is tested with, into the cache",
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, err := tools.Locate()
			if err != nil {
				return err
			}
			_, err = checkout.Builder(options.Out).Build(cmd.Context(), tools.Kubernetes, tools.CoreDNS, tools.Helm, tools.NetworkPolicies, tools.Traefik)
			return err
		},
	}
}
