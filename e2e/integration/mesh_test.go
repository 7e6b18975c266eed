// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
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

func TestARolloutIsRolledBackByAMesh(t *testing.T) {
	t.Parallel()
	p := meshed(t)
	before := p.pods()[imageV1]
	p.release()
	p.time.fail(true)
	p.checkRolledBack("WorseThanStable", before)
}

func TestAMeshAndACrashOfTheOperatorAtEachStage(t *testing.T) {
	t.Parallel()
	p := meshed(t)
	p.setImage(imageV2)
	for step := range int32(2) {
		p.held(step)
		p.operator.stop(t)
		p.operator = p.startOperator(p.time)
		p.held(step)
		p.pass(time.Hour)
	}
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
}

func TestTheSelectorOfAPinnedServiceIsPutBack(t *testing.T) {
	t.Parallel()
	p := meshed(t)
	p.promise.writes = restoredWithin // until the change of another actor is undone
	p.release()
	change(p.scene, "website", &corev1.Service{}, func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "website"} })
	p.eventually("the Service is narrowed again", func(ctx context.Context) bool {
		root := &corev1.Service{}
		return p.reader.Get(ctx, p.key("website"), root) == nil && len(traffic.PinOf(root).Keys) == 1
	})
}

// A split that a person leaves to a mesh is not touched at all.
func TestASplitOfAPersonIsLeftToTheMesh(t *testing.T) {
	t.Parallel()
	p := begin(t)
	split := trafficSplit(90, 10)
	split.Name = "by-hand"
	split.Spec.Service = "other"
	splitv1.SetRouting(split, splitv1.Routing{Router: "smi"})
	p.create(split)
	other := trafficSplit(90, 10)
	other.Name, other.Spec.Service = "served", "another"
	p.create(other) // the controller has seen the first one when it has seen this one
	p.eventually("the other split has a status", func(ctx context.Context) bool {
		return admin.Get(ctx, p.key("served"), other) == nil && len(other.Status.Conditions) > 0
	})
	live := &splitv1.TrafficSplit{}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(split), live); err != nil {
		t.Fatal(err)
	}
	if len(live.Finalizers) > 0 || len(live.Status.Conditions) > 0 || live.ResourceVersion != split.ResourceVersion {
		t.Errorf("the split was written: %s", dump(live))
	}
}
