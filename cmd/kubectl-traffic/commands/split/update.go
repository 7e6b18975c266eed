// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
)

// editor changes a split as flags say.
type editor struct {
	cluster *cli.Cluster
	output  *cli.Output
	dryRun  *string
}

// NewUpdate makes the command update.
func NewUpdate(c *cli.Cluster) *cobra.Command {
	var flags trafficblock.Flags
	e := &editor{cluster: c}
	cmd := &cobra.Command{
		Use:   "update SPLIT [--traffic REVISION=PERCENT]... [--tag REVISION=TAG]... [--untag TAG]...",
		Short: "Split the traffic of a TrafficSplit, and tag its versions",
		Long: `Update changes the percentage of traffic that each Service of a TrafficSplit gets, and the tags by which clients reach
single versions.

REVISION is the name of a Service: a backend of the split, or a new backend. "@latest" is the version whose ready pods
belong to the newest ReplicaSet when the command runs. That may be a Service that is not a backend, if its selector
includes that of the root Service. It may be used once with --traffic and once with --tag.

--traffic sets all percentages. They must sum to 100; if exactly one target is left out, it gets the rest. A tag may
stand for a REVISION, and takes precedence over a Service of that name. A target with neither a tag nor traffic is
removed.

--tag creates the Service TAG-SERVICE, which leads to that version only. A version can have several tags. To move a
tag from one version to another, remove it with --untag, in the same command if you like: whatever the order of the
flags, tags are removed first, then added, then the traffic is split.

Each flag may be repeated and takes lists, such as --traffic v1=50,v2=50. A command that fails has changed nothing. A
split that belongs to a Rollout, or that has weights for individual ports, is refused.`,
		Example: `  kubectl traffic update website --traffic website-v2=20 --traffic website-v1=80
  kubectl traffic update website --tag website-v3=candidate --traffic candidate=2,website-v2=98
  kubectl traffic update website --untag candidate --tag website-v3=current
  kubectl traffic update website --traffic @latest=100 --dry-run=server`,
		Args:              cli.Usage(cobra.ExactArgs(1)),
		ValidArgsFunction: cli.First(c.Splits),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := trafficblock.Parse(flags)
			if err != nil {
				return cli.WrongUsage(err)
			}
			if change.Empty() {
				return cli.UsageErrorf("nothing to change: give --traffic, --tag or --untag")
			}
			return e.run(cmd.Context(), cmd.OutOrStdout(), args[0], change)
		},
	}
	cmd.Flags().StringArrayVar(&flags.Traffic, "traffic", nil, "REVISION=PERCENT or TAG=PERCENT, comma-separated")
	cmd.Flags().StringArrayVar(&flags.Tag, "tag", nil, "REVISION=TAG, comma-separated")
	cmd.Flags().StringArrayVar(&flags.Untag, "untag", nil, "TAG, comma-separated")
	for _, flag := range []string{"traffic", "tag", "untag"} {
		cli.Complete(cmd, flag, cobra.NoFileCompletions)
	}
	e.output = cli.AddOutput(cmd, cli.AsWide, cli.AsName, cli.AsJSON, cli.AsYAML)
	e.dryRun = cli.AddDryRun(cmd)
	return cmd
}

// NewTag makes the command tag.
func NewTag(c *cli.Cluster) *cobra.Command {
	e := &editor{cluster: c}
	cmd := &cobra.Command{
		Use:   "tag SPLIT [REVISION=TAG | TAG-]...",
		Short: "List, add or remove tags of a TrafficSplit",
		Long: `Without further arguments, tag lists the tags of a TrafficSplit. REVISION=TAG adds a tag and "TAG-" removes it, by the
rules of --tag and --untag of kubectl traffic update.`,
		Example: `  kubectl traffic tag website
  kubectl traffic tag website website-v3=candidate
  kubectl traffic tag website candidate- website-v3=current`,
		Args:              cli.Usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: cli.First(c.Splits),
		RunE: func(cmd *cobra.Command, args []string) error {
			var flags trafficblock.Flags
			for _, arg := range args[1:] {
				if tag, found := strings.CutSuffix(arg, "-"); found {
					flags.Untag = append(flags.Untag, tag)
					continue
				}
				flags.Tag = append(flags.Tag, arg)
			}
			change, err := trafficblock.Parse(flags)
			if err != nil {
				return cli.WrongUsage(err)
			}
			return e.run(cmd.Context(), cmd.OutOrStdout(), args[0], change)
		},
	}
	e.output = cli.AddOutput(cmd, cli.AsWide, cli.AsName, cli.AsJSON, cli.AsYAML)
	e.dryRun = cli.AddDryRun(cmd)
	return cmd
}

// run changes the split, or only shows it where nothing is to be changed.
func (e *editor) run(ctx context.Context, out io.Writer, name string, change trafficblock.Change) error {
	if err := e.output.Check(); err != nil {
		return err
	}
	if err := cli.CheckDryRun(*e.dryRun); err != nil {
		return err
	}
	api, namespace, err := e.cluster.Connect()
	if err != nil {
		return err
	}
	l, err := loadSplit(ctx, api, namespace, splitName(name))
	if err != nil {
		return err
	}
	if change.Empty() {
		return e.print(out, api, l.split, "")
	}
	after, did, err := e.change(ctx, l, change)
	if err != nil {
		return err
	}
	return e.print(out, api, after, did)
}

// change carries out what was asked for, as far as --dry-run allows, and says so.
func (e *editor) change(ctx context.Context, l *loaded, change trafficblock.Change) (*splitv1.TrafficSplit, string, error) {
	if err := l.mayBeChanged(); err != nil {
		return nil, "", err
	}
	var latest string
	if change.NeedsLatest() {
		var err error
		if latest, err = l.latest(ctx); err != nil {
			return nil, "", err
		}
	}
	block, err := trafficblock.Compute(l.block, change, latest)
	if err != nil {
		return nil, "", err
	}
	after, writes, err := l.changed(ctx, block)
	if err != nil {
		return nil, "", err
	}
	if len(writes) == 0 {
		return after, "unchanged", nil
	}
	switch *e.dryRun {
	case cli.DryClient:
		return after, "updated (dry run)", nil
	case cli.DryServer:
		return after, "updated (server dry run)", dryRun(ctx, l.api, writes)
	}
	return after, "updated", together(ctx, l.api, writes)
}

// splitName takes the kind off a name, as in trafficsplit/website.
func splitName(arg string) string {
	kind, name, found := strings.Cut(arg, "/")
	switch kind {
	case "trafficsplit", "trafficsplits", "ts", "trafficsplits.split.smi-spec.io", "trafficsplit.split.smi-spec.io":
		if found {
			return name
		}
	}
	return arg
}

func (e *editor) print(out io.Writer, api client.Client, split *splitv1.TrafficSplit, did string) error {
	if e.output.Object() {
		return e.output.Print(out, api.Scheme(), split)
	}
	if did != "" {
		fmt.Fprintf(out, "trafficsplit.split.smi-spec.io/%s %s\n", split.Name, did)
	}
	given, err := tags.Read(split.Annotations)
	if err != nil {
		return err
	}
	var backends []trafficblock.Backend
	for _, b := range split.Spec.Backends {
		backends = append(backends, trafficblock.Backend{Service: b.Service, Weight: b.Weight})
	}
	var rows [][]string
	for i, percent := range trafficblock.Percents(backends) {
		b := backends[i]
		rows = append(rows, []string{
			b.Service, fmt.Sprintf("%d%%", percent), cli.OrNone(tags.Of(given, b.Service)),
			strconv.Itoa(int(b.Weight)), cli.OrNone(tagServices(given, b.Service, split)),
		})
	}
	return e.output.Table(out, append(cli.Columns("REVISION", "TRAFFIC", "TAGS"), cli.Wide("WEIGHT", "SERVICES")...), rows)
}

// tagServices are the Services by which a version is reached alone.
func tagServices(given map[string]string, service string, split *splitv1.TrafficSplit) string {
	var names []string
	for tag := range strings.SplitSeq(tags.Of(given, service), ",") {
		if name, err := tags.Name(tag, split); tag != "" && err == nil {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
