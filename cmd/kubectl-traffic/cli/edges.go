// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// edgesAtOnce is how many resources are asked for their edges at a time.
const edgesAtOnce = 8

// Asker answers questions about TrafficMetrics.
type Asker interface {
	Get(ctx context.Context, q Question) (*metricsv1.TrafficMetricsList, error)
}

// AllEdges asks for the edges of every resource of a list.
func AllEdges(ctx context.Context, m Asker, q Question) ([]trafficstats.Node, *metricsv1.TrafficMetricsList, error) {
	list, err := m.Get(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	nodes := trafficstats.Nodes(list)
	found, err := EdgesOf(ctx, m, q, nodes)
	if err != nil {
		return nil, nil, err
	}
	list.Items = slices.Concat(found...)
	return nodes, list, nil
}

// EdgesOf asks for the edges of each node, in their order. A node that has gone since it
// was listed has none.
func EdgesOf(ctx context.Context, m Asker, q Question, nodes []trafficstats.Node) ([][]metricsv1.TrafficMetrics, error) {
	found := make([][]metricsv1.TrafficMetrics, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(edgesAtOnce)
	for i, n := range nodes {
		group.Go(func() error {
			of, err := m.Get(ctx, Question{Kind: q.Kind, Namespace: n.Namespace, Name: n.Name, Edges: true})
			if _, gone := errors.AsType[MissingError](err); gone {
				return nil
			}
			if err == nil {
				found[i] = of.Items
			}
			return err
		})
	}
	return found, group.Wait()
}
