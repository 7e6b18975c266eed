// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Release is what there is of a Helm release.
type Release struct {
	// Newest is the newest revision, 0 when there is no such release.
	Newest int
	// Deployed is the revision that is deployed, 0 for none.
	Deployed int
	// Status is the newest revision's, in Helm's words: deployed, failed,
	// pending-upgrade, uninstalled, …
	Status string
	// AdoptedBy is the CanaryRelease whose adoption made the newest revision, "" for
	// none, and AdoptedContent the content of its request.
	AdoptedBy      types.UID
	AdoptedContent string
}

// Proposal is a release as it is and as it would be.
type Proposal struct {
	// Digest names the candidate's content; "" when it is refused. No value can be
	// read or guessed from it.
	Digest string
	// Canaries are the Deployments whose pods would change.
	Canaries []Canary
	// Copies are new or changed ConfigMaps and Secrets that the canaries' pods read,
	// under names of their own; empty when there are none.
	Copies []*unstructured.Unstructured
	// Later is what an adoption changes and a canary does not need: "Role/x".
	Later []string
	// Refused is why no canary can be made: sentences that name the object and the
	// remedy.
	Refused []string
}

// Canary is a Deployment whose pods would change.
type Canary struct {
	// Name of the Deployment.
	Name string
	// Template is the candidate's, with the names of copies put in, and not defaulted
	// by the API server.
	Template corev1.PodTemplateSpec
	// Rolls tells that the pods read a copy, so that the release's own pods must
	// replace the canary's at the adoption.
	Rolls bool
}

// Request names what is asked for.
type Request struct {
	Namespace, Release string
	// Version is the revision that the candidate is made from.
	Version int
	// Path is the sub-chart that Config is for: names joined by "/", "" for the chart.
	Path string
	// Config is a YAML map of values. It may hold secrets.
	Config []byte
	// UID and Name are those of the CanaryRelease.
	UID  types.UID
	Name string
	// Turn is called when a call that got a BusyError may be made. It must not block.
	Turn func() `json:"-"`
	// Still is called when the turn has come, unless it is nil; its error ends the call.
	Still func(context.Context) error `json:"-"`
}

// Content tells what is asked for from what else a user may ask for under the name: by 16 bits, which confirm
// no value that is guessed.
func (q Request) Content() string {
	h := sha256.New()
	for _, part := range []string{q.Name, q.Release, strconv.Itoa(q.Version), q.Path, string(q.Config)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:2])
}

// Releases reads and upgrades Helm releases.
type Releases interface {
	// Get tells what there is of a release. That there is none is no error.
	Get(ctx context.Context, namespace, release string) (Release, error)
	// Propose compares the release as it is with the candidate. It writes nothing. A BusyError
	// is no failure, as for Adopt. Without a Turn, which is for the Still of an upgrade, there
	// is none.
	Propose(ctx context.Context, r Request) (Proposal, error)
	// Adopt upgrades the release to the candidate. It is safe to repeat after a crash
	// at any write, and returns nil when the newest revision is deployed by it. A BusyError
	// is no failure: its turn has not come yet, and its place is kept.
	Adopt(ctx context.Context, r Request) error
	// WithdrawUpgrade and WithdrawProposal give up the place of a call that waits for its
	// turn, if there is one, of the CanaryRelease of that name.
	WithdrawUpgrade(canary types.NamespacedName)
	WithdrawProposal(canary types.NamespacedName)
}

// InvalidError says that a user has to change something. Its text is safe to
// show: it holds no value and nothing that a template printed.
type InvalidError struct{ Field, Message string }

func (e InvalidError) Error() string { return e.Field + ": " + e.Message }

// Invalid is an InvalidError about a field.
func Invalid(field, message string) InvalidError { return InvalidError{Field: field, Message: message} }

// FailureError is an error whose text is safe to show, and which may pass by itself.
type FailureError string

func (f FailureError) Error() string { return string(f) }

// BusyError says which calls come first. Its call was not made.
type BusyError string

func (e BusyError) Error() string { return string(e) }

// LimitError says which limit a call exceeded. The same call exceeds it again, unless the
// node was overloaded.
type LimitError string

func (e LimitError) Error() string { return string(e) }

// Fields of a CanaryRelease that errors are about.
const (
	FieldConfig  = "spec.config"
	FieldPath    = "spec.path"
	FieldRelease = "spec.release"
	FieldVersion = "spec.version"
)
