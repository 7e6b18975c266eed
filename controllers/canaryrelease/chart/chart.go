// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	rcommon "helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/chart/compare"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// Helm renders and upgrades releases.
type Helm struct{ open opener }

// New makes a Helm. Each call acts as the ServiceAccount of that name in the release's
// namespace: the configuration leads to the API server as that account, which the name is
// for messages of.
func New(config *rest.Config, serviceAccount string) *Helm {
	limitArchives()
	return &Helm{open: connectAs(config, serviceAccount)}
}

// explain replaces errors of Helm and of the API server.
func (s *session) explain(err error) error { return releases.Explain(err, s.trouble()) }

// Propose compares the release as it is with the candidate. It writes nothing.
func (h *Helm) Propose(ctx context.Context, q Request) (Proposal, error) {
	s, err := h.open(ctx, q.Namespace, true)
	if err != nil {
		return Proposal{}, err
	}
	p, err := s.propose(ctx, q)
	return p, s.explain(err)
}

// candidate is a revision and what a request makes of it.
type candidate struct {
	record *record
	chart  source
	path   []string
	// values are what Helm has as the user's.
	values map[string]any
}

func (s *session) candidate(ctx context.Context, q Request) (*candidate, error) {
	if err := releases.CheckName(q.Release); err != nil {
		return nil, err
	}
	config, err := parseConfig(q.Config)
	if err != nil {
		return nil, err
	}
	r, err := s.record(ctx, q.Release, q.Version)
	if err != nil {
		return nil, err
	}
	if status := r.release.Info.Status; status != rcommon.StatusDeployed && status != rcommon.StatusSuperseded {
		return nil, releases.Invalid(fieldVersion, fmt.Sprintf("revision %d of release %s is %s: name one that is deployed", q.Version, q.Release, status))
	}
	chart, err := s.source(ctx, r)
	if err != nil {
		return nil, err
	}
	whole, err := chart()
	if err != nil {
		return nil, err
	}
	path := split(q.Path)
	if err := checkPath(whole, path); err != nil {
		return nil, err
	}
	return &candidate{record: r, chart: chart, path: path, values: merge(r.release.Config, config, path)}, nil
}

func (s *session) propose(ctx context.Context, q Request) (Proposal, error) {
	c, err := s.candidate(ctx, q)
	if err != nil {
		return Proposal{}, err
	}
	capabilities, err := s.capabilities()
	if err != nil {
		return Proposal{}, err
	}
	r := &rendering{session: s, release: q.Release, revision: q.Version + 1, capabilities: capabilities}
	current, err := r.current(c)
	if err != nil {
		return Proposal{}, err
	}
	in := compare.Input{Namespace: s.namespace, Current: current}
	for _, objects := range []*[]*unstructured.Unstructured{&in.First, &in.Second} {
		chart, err := c.chart()
		if err != nil {
			return Proposal{}, err
		}
		if *objects, err = r.render(chart, c.values, c.path); err != nil {
			return Proposal{}, err
		}
	}
	if in.Claims, err = s.claims(ctx, compare.Claims(in.First)); err != nil {
		return Proposal{}, err
	}
	if in.Key, err = keyOf(q, c.record.release); err != nil {
		return Proposal{}, err
	}
	return proposal(compare.Compare(in)), nil
}

// current is the manifest on record. The chart has to render each of its objects
// from the values on record: of a chart that lacks a part of what runs, an upgrade
// would delete that part.
func (r *rendering) current(c *candidate) ([]*unstructured.Unstructured, error) {
	release := c.record.release
	recorded, err := compare.Parse(release.Manifest)
	if err != nil {
		return nil, releases.Invalid(fieldVersion, fmt.Sprintf("revision %d can't be read: %v", release.Version, err))
	}
	chart, err := c.chart()
	if err != nil {
		return nil, err
	}
	again, err := r.render(chart, release.Config, nil)
	if err != nil {
		if _, ok := errors.AsType[InvalidError](err); ok {
			return nil, releases.Invalid(fieldVersion, fmt.Sprintf("revision %d can't be rendered again with its own values: upgrade the release with helm first", release.Version))
		}
		return nil, err
	}
	if missing := compare.Missing(kept(recorded), again, r.session.namespace); len(missing) > 0 {
		return nil, releases.Invalid(fieldVersion, fmt.Sprintf("the recorded chart no longer makes %s of revision %d, so an upgrade would delete it: upgrade the release with helm first",
			strings.Join(missing, ", "), release.Version))
	}
	return recorded, nil
}

// kept leaves out what Helm does not delete.
func kept(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var rest []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			rest = append(rest, o)
		}
	}
	return rest
}

// claims reads the access modes of those claims that exist.
func (s *session) claims(ctx context.Context, names []string) (map[string][]corev1.PersistentVolumeAccessMode, error) {
	modes := map[string][]corev1.PersistentVolumeAccessMode{}
	for _, name := range names {
		claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		modes[name] = claim.Spec.AccessModes
	}
	return modes, nil
}

// keyOf is for names of contents: unknown to users who may not read the release's
// record, and the same for as long as the record says the same.
func keyOf(q Request, r *helm.Release) ([]byte, error) {
	config, err := json.Marshal([]any{q.UID, q.Version, r.Info.LastDeployed.UTC().Format(time.RFC3339Nano), r.Manifest, r.Config})
	if err != nil {
		return nil, releases.FailureError("the values of the release can't be encoded")
	}
	key := sha256.Sum256(config)
	return key[:], nil
}

func proposal(r compare.Result) Proposal {
	p := Proposal{Digest: r.Digest, Copies: r.Copies, Later: r.Later, Refused: r.Refused}
	for _, c := range r.Canaries {
		p.Canaries = append(p.Canaries, releases.Canary(c))
	}
	return p
}

// check tells whether a request's values still render, before anything is written.
func (s *session) check(q Request, c *candidate) error {
	capabilities, err := s.capabilities()
	if err != nil {
		return err
	}
	var chart *chartv2.Chart
	if chart, err = c.chart(); err != nil {
		return err
	}
	r := &rendering{session: s, release: q.Release, revision: q.Version + 1, capabilities: capabilities}
	_, err = r.render(chart, c.values, c.path)
	return err
}
