// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Release is what there is of a Helm release.
type Release struct {
	Newest    int       // newest revision, 0 when there is no such release
	Deployed  int       // revision that is deployed, 0 for none
	Status    string    // of the newest: Helm's words (deployed, failed, pending-upgrade, uninstalled, …)
	AdoptedBy types.UID // the CanaryRelease whose adoption made the newest revision, "" for none
}

// Proposal is a release as it is and as it would be.
type Proposal struct {
	Digest   string                       // names the candidate's content; never shows a value
	Canaries []Canary                     // the Deployments whose pods would change
	Copies   []*unstructured.Unstructured // new or changed ConfigMaps/Secrets (and ServiceAccounts) that canary pods read, renamed <name>-canary-<id>; empty when none
	Later    []string                     // what an adoption changes and a canary does not need: "Role/x"
	Refused  []string                     // why no canary can be made: sentences that name the object
}

// Canary is a Deployment whose pods would change.
type Canary struct {
	Name     string                 // of the Deployment
	Template corev1.PodTemplateSpec // the candidate's, with the names of Copies put in, not defaulted by the API server
	Rolls    bool                   // pods read a copy, so the release's own pods must replace the canary's at the adoption
}

// Request names what is asked for.
type Request struct {
	Namespace, Release string
	Version            int
	Path               string
	Config             []byte
	UID                types.UID
	Name               string
}

// Releases reads and upgrades Helm releases.
type Releases interface {
	Get(ctx context.Context, namespace, release string) (Release, error)
	Propose(ctx context.Context, r Request) (Proposal, error)
	Adopt(ctx context.Context, r Request) error
}

// InvalidError says what a person has to change. Its text is safe to show.
type InvalidError struct{ Field, Message string }

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }
