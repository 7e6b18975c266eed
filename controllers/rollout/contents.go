// SPDX-License-Identifier: Apache-2.0

package rollout

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

// contents knows the digest of each content that was read, so that it is read
// again only when it has changed, and who reads which object. All of it can be
// found out anew after a restart.
type contents struct {
	// start begins to watch a place, and returns what reads it; set before the first use.
	start func(context.Context, place) (client.Reader, error)

	mu      sync.Mutex
	watched map[place]client.Reader
	digests map[types.UID]content
	readers map[types.NamespacedName][]configrevision.Reference
}

// place is a kind in a namespace. Those are watched in which a Rollout asks for it.
type place struct {
	kind      v1alpha1.ConfigurationKind
	namespace string
}

type content struct {
	version, digest string
	changedAt       time.Time // zero when no change was seen
}

// flutter is how long further changes count as the same one: what changes all the time
// must not keep a release waiting.
const flutter = time.Minute

func newContents() *contents {
	return &contents{
		watched: map[place]client.Reader{}, digests: map[types.UID]content{},
		readers: map[types.NamespacedName][]configrevision.Reference{},
	}
}

// watch begins to watch a place if it is not watched yet, and returns what reads it.
func (c *contents) watch(ctx context.Context, p place) (client.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reader := c.watched[p]; reader != nil {
		return reader, nil
	}
	reader, err := c.start(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("watch objects of kind %s: %w", p.kind, err)
	}
	c.watched[p] = reader
	return reader, nil
}

// digest is that of an object as its metadata show it; "" for a content that can't
// be kept.
func (c *contents) digest(meta client.Object) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.digests[meta.GetUID()]
	return known.digest, found && known.version == meta.GetResourceVersion()
}

func (c *contents) learn(object client.Object, digest string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.digests[object.GetUID()]
	if found && known.digest != digest && debounce.Left(known.changedAt, flutter, now) == 0 {
		known.changedAt = now
	}
	known.version, known.digest = object.GetResourceVersion(), digest
	c.digests[object.GetUID()] = known
}

// changedAt is when a content was last seen to change; zero when it never was.
func (c *contents) changedAt(meta client.Object) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.digests[meta.GetUID()].changedAt
}

// use notes which objects a Rollout depends on.
func (c *contents) use(rollout types.NamespacedName, references []configrevision.Reference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[rollout] = references
}

func (c *contents) forget(rollout types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readers, rollout)
}

// changed finds the Rollouts that an object concerns: those that read it, and the
// one that it is a copy for. A digest that no Rollout needs any more is dropped.
func (c *contents) changed(ctx context.Context, kind v1alpha1.ConfigurationKind, object client.Object) []reconcile.Request {
	requests := rolloutByLabel(ctx, object)
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
