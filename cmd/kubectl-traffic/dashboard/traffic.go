// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// traffic sends all TrafficSplits that the viewer may see with what was measured of them, and
// then what changes.
func (s *server) traffic(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	where := scopeOf(ctx, v, trafficSplits, r.URL.Query().Get("namespace"))
	out := newStream(w)
	if out.send("scope", where) != nil {
		return
	}
	splits := newSplitStore(s.Clock)
	source := &watcher{kind: trafficSplits, api: v.API, namespace: where.Namespace, report: splits.report}
	go source.follow(ctx, splits)
	go s.measure(ctx, v, where.Namespace, splits)
	var said news
	s.pump(ctx, out, splits.wake, func() error {
		if err := said.send(out, "measured", measured{splits.missing()}); err != nil {
			return err
		}
		return splits.send(out)
	})
}

// measured says what is missing of what was measured.
type measured struct {
	Missing string `json:"missing,omitempty"`
}

// measure reads the TrafficMetrics of the splits from time to time.
func (s *server) measure(ctx context.Context, v *Viewer, namespace string, splits *splitStore) {
	ticker := s.Clock.NewTicker(rereadEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		splits.measured(v.splitMetrics(ctx, namespace))
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
}

func (v *Viewer) splitMetrics(ctx context.Context, namespace string) ([]metricsv1.TrafficMetrics, error) {
	if v.Metrics == nil {
		return nil, errors.New("the dashboard reads no TrafficMetrics")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list, err := v.Metrics.Get(ctx, cli.Question{Kind: observe.TrafficSplits, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

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

// splitStore keeps TrafficSplits with what was measured of them, and their rows.
type splitStore struct {
	*rowStore
	clock clock.PassiveClock

	mu      sync.Mutex // guards what follows, and is held while rows are made; taken before that of the rows
	splits  map[string]*splitv1.TrafficSplit
	watched map[string]view.Watched
	items   map[string][]metricsv1.TrafficMetrics
	wrong   string // why nothing is measured
}

func newSplitStore(c clock.PassiveClock) *splitStore {
	s := &splitStore{clock: c, splits: map[string]*splitv1.TrafficSplit{}, watched: map[string]view.Watched{}}
	s.rowStore = newRowStore(rowOf(s.row))
	return s
}

// row is that of a split by what is known at present.
func (s *splitStore) row(split *splitv1.TrafficSplit) view.Split {
	key := keyOf(split)
	s.watched[key] = s.watched[key].Next(split, s.items[key], s.clock.Now())
	return view.MakeSplit(split, s.items[key], s.watched[key])
}

// measured takes what was measured, or why nothing was. What was measured before is forgotten
// then: it would be taken for what is true now.
func (s *splitStore) measured(items []metricsv1.TrafficMetrics, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items, s.wrong = map[string][]metricsv1.TrafficMetrics{}, ""
	if err != nil {
		s.wrong = fmt.Sprintf("Measured shares are left out: %v.", cli.Explained(err))
	}
	for _, m := range items {
		key := m.Resource.Namespace + "/" + m.Resource.Name
		s.items[key] = append(s.items[key], m)
	}
	for _, split := range s.splits {
		_ = s.rowStore.Update(split) // it was taken before
	}
	s.change(func() {})
}

func (s *splitStore) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

func (s *splitStore) Add(object any) error { return s.Update(object) }

func (s *splitStore) Update(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(object)
	return s.rowStore.Update(object)
}

func (s *splitStore) keep(object any) {
	if split, ok := object.(*splitv1.TrafficSplit); ok { // else the row says what is wrong
		s.splits[keyOf(split)] = split
	}
}

func (s *splitStore) Delete(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.rowStore.Delete(object)
	if split, ok := object.(*splitv1.TrafficSplit); ok {
		delete(s.splits, keyOf(split))
		delete(s.watched, keyOf(split))
	}
	return err
}

// Replace takes a whole list.
func (s *splitStore) Replace(list []any, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.splits)
	for _, object := range list {
		s.keep(object)
	}
	for key := range s.watched {
		if s.splits[key] == nil {
			delete(s.watched, key)
		}
	}
	return s.rowStore.Replace(list, version)
}
