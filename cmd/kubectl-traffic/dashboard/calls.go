// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// mostCallers is how many resources are asked for who calls them, every time: more could not be
// read in a picture, and each is a request to the cluster.
const mostCallers = 60

// callKinds are the kinds between which calls are shown.
var callKinds = map[string]observe.Kind{"": observe.Deployments, "deployments": observe.Deployments, "services": observe.Services}

// calls is who calls whom in a namespace, in the last window.
type calls struct {
	Namespace string `json:"namespace"`
	trafficstats.Topology
	// LeftOut are the resources that were not asked since there are more than mostCallers.
	LeftOut int `json:"leftOut,omitempty"`
	// Missing is why nothing is known; else "".
	Missing string `json:"missing,omitempty"`
}

// calls sends who calls whom in a namespace, and again each time that it was read.
func (s *server) calls(w http.ResponseWriter, r *http.Request, v *Viewer) {
	kind, ok := callKinds[r.URL.Query().Get("kind")]
	if !ok {
		fail(w, http.StatusBadRequest, "kind must be deployments or services")
		return
	}
	namespace := r.URL.Query().Get("namespace")
	if namespace == "" {
		namespace = v.Namespace
	}
	out := newStream(w)
	ticker := s.Clock.NewTicker(rereadEvery)
	defer ticker.Stop()
	for out.send("calls", v.calls(r.Context(), kind, namespace)) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C():
		}
	}
}

func (v *Viewer) calls(ctx context.Context, kind observe.Kind, namespace string) calls {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	graph, leftOut, err := v.graph(ctx, cli.Question{Kind: kind, Namespace: namespace})
	out := calls{Namespace: namespace, Topology: graph.Topology(), LeftOut: leftOut}
	if err != nil {
		out.Missing = fmt.Sprintf("Who calls whom is not known: %v.", cli.Explained(err))
	}
	return out
}

// graph is that of the resources with the most requests; leftOut are the others.
func (v *Viewer) graph(ctx context.Context, q cli.Question) (graph trafficstats.Graph, leftOut int, err error) {
	if v.Metrics == nil {
		return graph, 0, errors.New("the dashboard reads no TrafficMetrics")
	}
	list, err := v.Metrics.Get(ctx, q)
	if err != nil {
		return graph, 0, err
	}
	slices.SortStableFunc(list.Items, busiestFirst)
	nodes := trafficstats.Nodes(list)
	if len(nodes) > mostCallers {
		leftOut, nodes = len(nodes)-mostCallers, nodes[:mostCallers]
	}
	edges, err := cli.EdgesOf(ctx, v.Metrics, q, nodes)
	if err != nil {
		return graph, 0, err
	}
	return trafficstats.Build(nodes, slices.Concat(edges...)), leftOut, nil
}

func busiestFirst(a, b metricsv1.TrafficMetrics) int {
	first, _ := trafficstats.Read(&a).RPS()
	second, _ := trafficstats.Read(&b).RPS()
	return cmp.Compare(second, first)
}
