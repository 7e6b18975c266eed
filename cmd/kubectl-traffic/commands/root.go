// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/canary"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/metrics"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/migrate"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/rollout"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands/split"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/terminal"
)

// groups make the commands below the root, in the order of the help.
var groups = []func(*cli.Cluster) *cobra.Command{
	metrics.NewTop,
	metrics.NewTopology,
	split.NewUpdate,
	split.NewTag,
	rollout.New,
	canary.New,
	migrate.New,
	dashboard.New,
	newVersionCommand,
}

// Run runs the command that the arguments name and returns the exit status.
func Run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	cleanErrs := terminal.NewClean(errs)
	root := newRoot(&cli.Cluster{Errs: cleanErrs, Screen: terminal.NewScreen(out)})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(terminal.NewClean(out))
	root.SetErr(cleanErrs)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(cleanErrs, "error:", cli.Explained(err))
	}
	return cli.Status(err)
}

// NewRoot makes the command with everything below it, to be documented.
func NewRoot() *cobra.Command { return newRoot(&cli.Cluster{Errs: io.Discard}) }

func newRoot(c *cli.Cluster) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-traffic",
		Short: "Show and split traffic, and manage releases by Serin",
		Long: `Show which workloads call each other and how well, split traffic between Services, and manage releases by Serin.

The plugin uses the Kubernetes API with your own permissions. The global flags of kubectl, such as --as and --context,
work here too.

Exit status: 0 on success; 1 on failure; 2 on wrong usage; 3 when a wait ends without the expected state.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl traffic"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              cli.Usage(cobra.NoArgs),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.WrongUsage(err) })
	c.AddFlags(root)
	for _, group := range groups {
		root.AddCommand(group(c))
	}
	return root
}
