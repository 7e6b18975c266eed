// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// top has the flags of the command.
type top struct {
	cluster       *cli.Cluster
	output        *cli.Output
	allNamespaces bool
	selector      string
	sortBy        string
	direction     string
	edges         bool
}

// Directions of --direction.
const (
	// anyDirection is what is received, and of what only sends what it sends.
	anyDirection   = "any"
	fromDirection  = string(metricsv1.DirectionFrom)
	toDirection    = string(metricsv1.DirectionTo)
	bothDirections = "both"
)

var directions = []string{anyDirection, fromDirection, toDirection, bothDirections}

// NewTop makes the command top.
func NewTop(c *cli.Cluster) *cobra.Command {
	t := &top{cluster: c}
	cmd := &cobra.Command{
		Use:   "top RESOURCE [NAME]",
		Short: "Show success rate, requests per second and latency",
		Long: `Top shows the traffic of resources in the last window: the success rate, requests per second, and the 99th percentile
of the latency. With -o wide, also the median, the 90th percentile, the counts and the window.

RESOURCE is one of namespaces, nodes, pods, replicationcontrollers, services, daemonsets, deployments, replicasets,
statefulsets, jobs and trafficsplits. A TrafficSplit has a line for each backend. A value that was not measured is
shown as "-", never as 0.

Top shows the traffic that a resource receives, or the traffic that it sends if it receives none; the column DIRECTION
tells them apart. --direction=from shows received traffic only, --direction=to sent traffic only, and both a line for
each. --edges shows a line for each peer: the callers of a resource and the resources that it calls.

Of a resource that also receives traffic, only the edges show what it sends. So --direction=to, both and --edges make
a request for each resource, and need the permission to get the subresource edges of RESOURCE. Latencies of several
edges can't be added up, and are shown as "-".`,
		Example: `  kubectl traffic top deployments
  kubectl traffic top pods -l app=website --sort-by=success
  kubectl traffic top deployment website --edges
  kubectl traffic top deployments --direction=to
  kubectl traffic top trafficsplit website -o wide`,
		Args:              cli.Usage(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: resources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&t.allNamespaces, "all-namespaces", "A", false, "show resources of all namespaces")
	flags.StringVarP(&t.selector, "selector", "l", "", "label selector of the resources to show, such as app=website")
	flags.StringVar(&t.sortBy, "sort-by", "name", "sort by: "+strings.Join(trafficstats.SortKeys, "|"))
	flags.StringVar(&t.direction, "direction", anyDirection, "any: received traffic, or else sent traffic; from: received traffic; to: sent traffic; both")
	flags.BoolVar(&t.edges, "edges", false, "show a line for each peer")
	cli.Complete(cmd, "sort-by", cli.Fixed(trafficstats.SortKeys...))
	cli.Complete(cmd, "direction", cli.Fixed(directions...))
	cli.Complete(cmd, "selector", cobra.NoFileCompletions)
	t.output = cli.AddOutput(cmd, cli.AsWide, cli.AsJSON, cli.AsYAML)
	return cmd
}

// resources proposes kinds.
func resources(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return trafficstats.KindNames(), cobra.ShellCompDirectiveNoFileComp
}

// ask is the question that the flags put.
func ask(c *cli.Cluster, args []string, allNamespaces bool, selector string) (cli.Question, error) {
	if kind, name, found := strings.Cut(args[0], "/"); found && len(args) == 1 {
		args = []string{kind, name}
	}
	kind, err := trafficstats.KindOf(args[0])
	if err != nil {
		return cli.Question{}, cli.WrongUsage(err)
	}
	q := cli.Question{Kind: kind, Selector: selector}
	if len(args) > 1 {
		q.Name = args[1]
	}
	if q.Name != "" && selector != "" {
		return q, cli.UsageErrorf("give a name or --selector, not both")
	}
	if !kind.Namespaced || allNamespaces && q.Name == "" {
		return q, nil
	}
	if allNamespaces {
		return q, cli.UsageErrorf("a name is in one namespace: give --namespace instead of --all-namespaces")
	}
	q.Namespace, err = c.Namespace()
	return q, err
}

func (t *top) check() error {
	if err := t.output.Check(); err != nil {
		return err
	}
	if !slices.Contains(trafficstats.SortKeys, t.sortBy) {
		return cli.UsageErrorf("--sort-by: %q is not one of %s", t.sortBy, strings.Join(trafficstats.SortKeys, ", "))
	}
	if !slices.Contains(directions, t.direction) {
		return cli.UsageErrorf("--direction: %q is not one of %s", t.direction, strings.Join(directions, ", "))
	}
	return nil
}

func (t *top) run(ctx context.Context, out, errs io.Writer, args []string) error {
	if err := t.check(); err != nil {
		return err
	}
	q, err := ask(t.cluster, args, t.allNamespaces, t.selector)
	if err != nil {
		return err
	}
	m, err := t.cluster.Metrics()
	if err != nil {
		return err
	}
	list, err := t.list(ctx, m, q)
	if err != nil {
		return err
	}
	if t.output.Object() {
		return cli.PrintValue(out, t.output.Form, list)
	}
	rows := t.rows(list.Items)
	if len(rows) == 0 {
		fmt.Fprintf(errs, "No traffic of %s was measured %s in the last window.\n", q.Kind.Resource, q.Place())
		return nil
	}
	trafficstats.Sort(rows, t.sortBy)
	return t.print(out, rows, q)
}

// list returns the resources, or their edges.
func (t *top) list(ctx context.Context, m *cli.Metrics, q cli.Question) (*metricsv1.TrafficMetricsList, error) {
	switch {
	case t.edges && q.Name != "":
		q.Edges = true
		return m.Get(ctx, q)
	case t.edges:
		_, list, err := cli.AllEdges(ctx, m, q)
		return list, err
	}
	list, err := m.Get(ctx, q)
	if err != nil || t.direction != toDirection && t.direction != bothDirections {
		return list, err
	}
	return list, addSent(ctx, m, q, list)
}

// addSent adds what resources send to a list that only tells what they receive.
func addSent(ctx context.Context, m *cli.Metrics, q cli.Question, list *metricsv1.TrafficMetricsList) error {
	received := map[trafficstats.Node]bool{}
	for i := range list.Items {
		if list.Items[i].Edge.Direction == metricsv1.DirectionTo {
			received[trafficstats.NodeOf(list.Items[i].Resource)] = true
		}
	}
	nodes := slices.DeleteFunc(trafficstats.Nodes(list), func(n trafficstats.Node) bool { return received[n] })
	found, err := cli.EdgesOf(ctx, m, q, nodes)
	if err != nil {
		return err
	}
	for _, edges := range found {
		if sent := trafficstats.Sent(edges); sent != nil {
			list.Items = append(list.Items, *sent)
		}
	}
	return nil
}

// rows are the items of the direction that was asked for.
func (t *top) rows(items []metricsv1.TrafficMetrics) []trafficstats.Row {
	switch t.direction {
	case bothDirections:
		return trafficstats.Rows(items, "")
	case anyDirection:
		if !t.edges {
			items = trafficstats.Received(items)
		}
		return trafficstats.Rows(items, "")
	}
	return trafficstats.Rows(items, metricsv1.Direction(t.direction))
}

// print prints a table whose columns are those that the rows differ in.
func (t *top) print(out io.Writer, rows []trafficstats.Row, q cli.Question) error {
	backends := slices.ContainsFunc(rows, func(r trafficstats.Row) bool { return r.Backend != nil })
	differ := slices.ContainsFunc(rows, func(r trafficstats.Row) bool { return r.Direction != rows[0].Direction })
	alone := t.direction == anyDirection && rows[0].Direction == metricsv1.DirectionTo
	var heads []cli.Column
	var cells [][]string
	for _, r := range rows {
		var names, row []string
		put := func(head, cell string) { names, row = append(names, head), append(row, cell) }
		if q.Kind.Namespaced && q.Namespace == "" {
			put("NAMESPACE", r.Namespace)
		}
		put("NAME", r.Name)
		if backends {
			put("BACKEND", backendName(r))
			put("WEIGHT", backendWeight(r))
		}
		if t.edges || differ || alone {
			put("DIRECTION", string(r.Direction))
		}
		if t.edges {
			put("EDGE", edgeName(r))
		}
		heads = append(cli.Columns(append(names, "SUCCESS", "RPS", "LATENCY_P99")...), cli.Wide("LATENCY_P50", "LATENCY_P90", "SUCCEEDED", "FAILED", "WINDOW")...)
		cells = append(cells, slices.Concat(row, r.Cells(), r.MoreCells()))
	}
	return t.output.Table(out, heads, cells)
}

func backendName(r trafficstats.Row) string {
	if r.Backend == nil {
		return trafficstats.Unknown
	}
	return r.Backend.Name
}

func backendWeight(r trafficstats.Row) string {
	if r.Backend == nil {
		return trafficstats.Unknown
	}
	return strconv.Itoa(int(r.Backend.Weight))
}

// edgeName is the other end, with its namespace where that is another one.
func edgeName(r trafficstats.Row) string {
	switch {
	case r.Other.Name == "":
		return cli.OrNone(strings.Trim(r.Other.Namespace+"/"+strings.ToLower(r.Other.Kind), "/"))
	case r.Other.Namespace == "" || r.Other.Namespace == r.Namespace:
		return r.Other.Name
	}
	return r.Other.Namespace + "/" + r.Other.Name
}
