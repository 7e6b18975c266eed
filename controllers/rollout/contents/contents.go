// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
	"github.com/serin-dev/serin/controllers/kit/debounce"
)

// Contents knows the digest of each content that was read, so that it is read
// again only when it has changed, and who reads which object. All of it can be
// found out anew after a restart.
type Contents struct {
	// Start begins to watch a place, and returns what reads it; set before the first use.
	Start func(context.Context, Place) (client.Reader, error)

	mu      sync.Mutex
	watched map[Place]client.Reader
	digests map[types.UID]content
	readers map[types.NamespacedName][]configrevision.Reference
}

// Place is a kind in a namespace. Those are watched in which a Rollout asks for it.
type Place struct {
	// Kind of the objects.
	Kind v1alpha1.ConfigurationKind
	// Namespace that they are in.
	Namespace string
}

type content struct {
	version, digest string
	changedAt       time.Time // zero when no change was seen
}

// flutter is how long further changes count as the same one: what changes all the time
// must not keep a release waiting.
const flutter = time.Minute

// New makes a Contents that knows nothing yet.
func New() *Contents {
	return &Contents{
		watched: map[Place]client.Reader{}, digests: map[types.UID]content{},
		readers: map[types.NamespacedName][]configrevision.Reference{},
	}
}

// Watch begins to watch a place if it is not watched yet, and returns what reads it.
func (c *Contents) Watch(ctx context.Context, p Place) (client.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reader := c.watched[p]; reader != nil {
		return reader, nil
	}
	reader, err := c.Start(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("watch objects of kind %s: %w", p.Kind, err)
	}
	c.watched[p] = reader
	return reader, nil
}

// Digest is that of an object as its metadata show it; "" for a content that can't
// be kept.
func (c *Contents) Digest(meta client.Object) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.digests[meta.GetUID()]
	return known.digest, found && known.version == meta.GetResourceVersion()
}

// Learn notes the digest of a content that was read.
func (c *Contents) Learn(object client.Object, digest string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.digests[object.GetUID()]
	if found && known.digest != digest && debounce.Left(known.changedAt, flutter, now) == 0 {
		known.changedAt = now
	}
	known.version, known.digest = object.GetResourceVersion(), digest
	c.digests[object.GetUID()] = known
}

// ChangedAt is when a content was last seen to change; zero when it never was.
func (c *Contents) ChangedAt(meta client.Object) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.digests[meta.GetUID()].changedAt
}

// Use notes which objects a Rollout depends on.
func (c *Contents) Use(rollout types.NamespacedName, references []configrevision.Reference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[rollout] = references
}

// Forget drops what a Rollout that is gone depended on.
func (c *Contents) Forget(rollout types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readers, rollout)
}

// Changed finds the Rollouts that an object concerns: those that read it, beside the
// one that it is a copy for. A digest that no Rollout needs any more is dropped.
func (c *Contents) Changed(kind v1alpha1.ConfigurationKind, object client.Object, copyFor []reconcile.Request) []reconcile.Request {
	requests := slices.Clone(copyFor)
	ref := configrevision.Reference{Kind: kind, Name: object.GetName()}
	c.mu.Lock()
	defer c.mu.Unlock()
	for rollout, references := range c.readers {
		if rollout.Namespace == object.GetNamespace() && slices.Contains(references, ref) {
			requests = append(requests, reconcile.Request{NamespacedName: rollout})
		}
	}
	if len(requests) == 0 {
		delete(c.digests, object.GetUID())
	}
	return requests
}
