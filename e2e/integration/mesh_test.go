// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// meshSettle is how long the mesh of the tests, which there is none of, is given.
const meshSettle = 2 * time.Second

// meshed begins a play whose split a mesh serves: callers outside of it must meet one
// version at every moment.
func meshed(t *testing.T) *stage {
	t.Helper()
	p := begin(t, func(c *cast) { c.rollout.Spec.Router = v1alpha1.RouterSMI })
	p.promise.oneVersion = true
	return p
}

func TestARolloutIsPromotedByAMesh(t *testing.T) {
	t.Parallel()
	p := meshed(t)
	since := auditEnd(t)
	p.release()
	root := &corev1.Service{}
	if err := admin.Get(t.Context(), p.key("website"), root); err != nil {
		t.Fatal(err)
	}
	if pin := traffic.PinOf(root); pin.Split != "website" || len(pin.Keys) != 1 {
		t.Errorf("the Service is pinned by %+v", pin)
	}
	p.finish(4)
	p.checkDrain(since)
}

// checkDrain: what a mesh may still send to is there for a time after the split. Both times are
// the API server's, since watches bring what happens late on a busy machine, and unequally so.
func (p *stage) checkDrain(since int64) {
	p.Helper()
	var split, backend auditEvent // the last requests that changed them
	p.eventually("the audit log has the deletion of the canary's Service", func(context.Context) bool {
		events, err := auditedSince(since, p.userAgent())
		if err != nil {
			p.Fatal(err)
		}
		for _, e := range events {
			o := e.ObjectRef
			if o == nil || o.Namespace != p.namespace || e.ResponseStatus.Code != http.StatusOK || !slices.Contains([]string{"update", "patch", "delete"}, e.Verb) {
				continue
			}
			switch o.Resource + "/" + o.Name {
			case "trafficsplits/website":
				split = e
			case "services/website-canary":
				backend = e
			}
		}
		return backend.Verb == "delete"
	})
	if after := backend.Answered.Sub(split.Received); split.Received.IsZero() || after < meshSettle {
		p.Errorf("the canary's Service was gone %s after the split, of which the last request was %+v", after, split)
	}
}
