// SPDX-License-Identifier: Apache-2.0

// Command argocddiff compares objects as Argo CD does: it reads Pairs as JSON from
// standard input, and prints a Difference for each.
//
// It is a program of its own, since Argo CD's library needs another release of the
// libraries of Kubernetes than the product.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pair is what Git declares of an object and what the cluster has of it.
type Pair struct {
	Config unstructured.Unstructured `json:"config"`
	Live   unstructured.Unstructured `json:"live"`
	// Predicted is what the API server answers to a server-side apply of Config as a dry
	// run. Argo CD compares it with Live where it is told to diff on the server.
	Predicted unstructured.Unstructured `json:"predicted"`
}

// Difference is what Argo CD makes of a Pair. A Change is nil where it sees none.
type Difference struct {
	// Client is by the default rule: three ways, by the last applied configuration.
	Client *Change `json:"client,omitempty"`
	// Server is by Predicted.
	Server *Change `json:"server,omitempty"`
	// Health is by the rules that are built into Argo CD; "" where it has none.
	Health health.HealthStatusCode `json:"health,omitempty"`
}

// Change is what Argo CD would change of the live object.
type Change struct {
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "argocddiff:", err)
		os.Exit(1)
	}
}

func run() error {
	var pairs []Pair
	if err := json.NewDecoder(os.Stdin).Decode(&pairs); err != nil {
		return fmt.Errorf("read the pairs: %w", err)
	}
	differences := make([]Difference, len(pairs))
	for i := range pairs {
		var err error
		if differences[i], err = compare(&pairs[i]); err != nil {
			return fmt.Errorf("%s %s: %w", pairs[i].Config.GetKind(), pairs[i].Config.GetName(), err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(differences)
}

func compare(p *Pair) (Difference, error) {
	client, err := diff.Diff(&p.Config, &p.Live)
	if err != nil {
		return Difference{}, err
	}
	predicted, err := p.Predicted.MarshalJSON()
	if err != nil {
		return Difference{}, err
	}
	// Mutations by admission are compared too: the hold policy makes some.
	server, err := diff.Diff(&p.Config, &p.Live, diff.WithServerSideDiff(true),
		diff.WithIgnoreMutationWebhook(false), diff.WithServerSideDryRunner(answer(predicted)))
	if err != nil {
		return Difference{}, err
	}
	status, err := health.GetResourceHealth(&p.Live, nil)
	if err != nil || status == nil {
		status = &health.HealthStatus{}
	}
	return Difference{Client: changeOf(client), Server: changeOf(server), Health: status.Status}, err
}

// answer is a dry run that was made before.
type answer string

func (a answer) Run(context.Context, *unstructured.Unstructured, string) (string, error) {
	return string(a), nil
}

func changeOf(r *diff.DiffResult) *Change {
	if !r.Modified {
		return nil
	}
	return &Change{From: r.NormalizedLive, To: r.PredictedLive}
}
