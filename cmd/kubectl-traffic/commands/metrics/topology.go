// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/boxgraph"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// Forms of a topology beside JSON and YAML.
const (
	asText = "text"
	asDOT  = "dot"
)

// NewTopology makes the command topology.
func NewTopology(c *cli.Cluster) *cobra.Command {
	var allNamespaces bool
	var selector string
	var form *cli.Output
	cmd := &cobra.Command{
		Use:   "topology RESOURCE",
		Short: "Show which workloads call each other",
		Long: `Topology draws the calls between resources in the last window, with a table of their success rates and latencies.

Lines run from clients on the left to servers on the right. "◀──▶" stands for calls in both directions, "↻" for a
resource that calls itself, and "↩ name" for a call to a box further left. The command reads the edges of each
resource, and needs the permission to get the subresource edges of RESOURCE.

-o dot writes Graphviz input; -o json and -o yaml write lists of nodes and edges.`,
		Example: `  kubectl traffic topology deployments
  kubectl traffic topology services -A -o dot | dot -Tsvg > services.svg`,
		Args:              cli.Usage(cobra.ExactArgs(1)),
		ValidArgsFunction: resources,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := form.Check(); err != nil {
				return err
			}
			q, err := ask(c, args, allNamespaces, selector)
			if err != nil {
				return err
			}
			m, err := c.Metrics()
			if err != nil {
				return err
			}
			return topology(cmd, m, q, form)
		},
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "show resources of all namespaces")
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "label selector of the resources whose edges to read, such as app=website")
	cli.Complete(cmd, "selector", cobra.NoFileCompletions)
	form = cli.AddOutput(cmd, asText, asDOT, cli.AsJSON, cli.AsYAML)
	return cmd
}

func topology(cmd *cobra.Command, m *cli.Metrics, q cli.Question, form *cli.Output) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	var nodes []trafficstats.Node
	var list *metricsv1.TrafficMetricsList
	var err error
	if q.Name != "" {
		q.Edges = true
		list, err = m.Get(ctx, q)
	} else {
		nodes, list, err = cli.AllEdges(ctx, m, q)
	}
	if err != nil {
		return err
	}
	graph := trafficstats.Build(nodes, list.Items)
	switch form.Form {
	case asDOT:
		_, err = io.WriteString(out, graph.DOT())
		return err
	case cli.AsJSON, cli.AsYAML:
		return cli.PrintValue(out, form.Form, graph.Topology())
	}
	if len(graph.Nodes) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "No traffic of %s was measured %s in the last window.\n", q.Kind.Resource, q.Place())
		return nil
	}
	return draw(out, graph, form)
}

// draw draws the graph and lists its edges.
func draw(out io.Writer, graph trafficstats.Graph, form *cli.Output) error {
	index := map[trafficstats.Node]int{}
	var labels []string
	names := graph.Labels()
	for i, n := range graph.Nodes {
		index[n] = i
		labels = append(labels, cli.OneLine(names[n]))
	}
	var edges []boxgraph.Edge
	var rows [][]string
	for _, e := range graph.Edges {
		edges = append(edges, boxgraph.Edge{From: index[e.From], To: index[e.To]})
		rows = append(rows, append([]string{names[e.From], names[e.To]}, e.Cells()...))
	}
	fmt.Fprintln(out, boxgraph.Text(labels, edges))
	if len(rows) == 0 {
		return nil
	}
	return form.Table(out, cli.Columns("FROM", "TO", "SUCCESS", "RPS", "LATENCY_P99"), rows)
}
