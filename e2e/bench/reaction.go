// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// Reaction is how fast the operator reacts, in the API server's own time: from the
// moment at which it received the request that changed something to the moment at
// which it received the operator's.
type Reaction struct {
	// Template is from the change of a template to the first write for its release.
	Template Quantiles
	// Pods is from the report that all pods of a canary that is scaled are available
	// to the request of its weight, at each weight and at the promotion. Without a router
	// the pods are the weight, and nothing is written.
	Pods Quantiles
	// Server is how long the API server took for a write of the operator: when that is
	// long, the machine is busy, and so are the others.
	Server Quantiles
}

// Quantiles of durations.
type Quantiles struct {
	P50, P99 time.Duration
	// Of is how many durations there are.
	Of int
}

// app is one Deployment with its Rollout.
type app struct{ namespace, name string }

// appOf finds the app that a request is about, by the names of its objects.
func appOf(r *request) (app, bool) {
	name := strings.TrimPrefix(r.Object.Name, proxyPrefix)
	if !strings.HasPrefix(name, appPrefix) || len(name) < appNameLength {
		return app{}, false
	}
	return app{r.Object.Namespace, name[:appNameLength]}, true
}

// reactions measures every release of a log.
func reactions(requests []request) Reaction {
	byReceived := slices.Clone(requests)
	slices.SortStableFunc(byReceived, func(a, b request) int { return a.Received.Compare(b.Received) })
	w := watcher{changed: map[app]time.Time{}, available: map[app]time.Time{}, full: map[string]int32{}}
	for i := range byReceived {
		r := &byReceived[i]
		if a, found := appOf(r); found {
			w.see(a, r)
		}
	}
	return Reaction{Template: quantiles(w.template), Pods: quantiles(w.pods), Server: quantiles(w.server)}
}

// watcher keeps what the operator has not reacted to yet.
type watcher struct {
	changed, available map[app]time.Time
	full               map[string]int32 // scale at which a ReplicaSet was available last, by UID

	template, pods, server []time.Duration
}

func (w *watcher) see(a app, r *request) {
	switch {
	case r.UserAgent == agentOfPeople && r.Object.Resource == "deployments":
		w.changed[a] = r.Received
	case r.byOperator():
		w.reacted(a, r)
	case r.Object.Resource == "replicasets" && r.Object.Subresource == "status":
		w.reported(a, r)
	}
}

func (w *watcher) reacted(a app, r *request) {
	class := classify(r).Class
	if class == ClassWrite {
		w.server = append(w.server, r.Answered.Sub(r.Received))
	}
	if since, found := w.changed[a]; found && class == ClassWrite {
		w.template = append(w.template, r.Received.Sub(since))
		delete(w.changed, a)
	}
	if since, found := w.available[a]; found && class == ClassWrite && r.resource() == "trafficsplits" {
		w.pods = append(w.pods, r.Received.Sub(since))
		delete(w.available, a)
	}
}

// reported notes the first report that says that a canary is complete at its scale.
func (w *watcher) reported(a app, r *request) {
	var rs struct {
		Metadata struct {
			UID    string `json:"uid"`
			Owners []struct {
				Kind string `json:"kind"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
		Spec struct {
			Replicas int32 `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Available int32 `json:"availableReplicas"`
		} `json:"status"`
	}
	if json.Unmarshal(r.Body, &rs) != nil || len(rs.Metadata.Owners) != 1 || rs.Metadata.Owners[0].Kind != canaryOwner {
		return
	}
	id := rs.Metadata.UID
	if rs.Spec.Replicas == 0 || rs.Status.Available != rs.Spec.Replicas || w.full[id] == rs.Spec.Replicas {
		return
	}
	w.full[id] = rs.Spec.Replicas
	w.available[a] = r.Received
}

// quantiles are by the nearest rank, so that each is a duration that was measured.
func quantiles(d []time.Duration) Quantiles {
	if len(d) == 0 {
		return Quantiles{}
	}
	slices.Sort(d)
	rank := func(q float64) time.Duration { return d[max(int(math.Ceil(q*float64(len(d))))-1, 0)] }
	return Quantiles{P50: rank(0.5), P99: rank(0.99), Of: len(d)}
}
