// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/controllers/trafficsplit"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
)

// startStandby runs a manager that waits for a lease until the test ends. Another one holds
// it, which is dead.
func (s *scene) startStandby() {
	s.Helper()
	cfg, options := s.managerOptions(logOf(s.T), trafficsplit.CacheOptions(), s.namespace)
	options.LeaderElection, options.LeaderElectionConfig = true, plane.Config
	options.LeaderElectionNamespace, options.LeaderElectionID = s.namespace, "manager"
	s.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("dead"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro()), AcquireTime: new(metav1.NowMicro()),
		},
	})
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		s.Fatal(err)
	}
	addControllers(s.T, mgr, newMeasurements(), sight{namespaces: []string{s.namespace}})
	run(s.T, mgr)
	s.Cleanup(func() {
		select {
		case <-mgr.Elected():
			s.Error("the manager became the leader: the test says nothing")
		default:
		}
	})
}

// throughProxies are the ready endpoints of the root Service by Serin's EndpointSlices.
func (s *scene) throughProxies(ctx context.Context) (names []string) {
	list := &discoveryv1.EndpointSliceList{}
	if err := admin.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{
		discoveryv1.LabelServiceName: "website", discoveryv1.LabelManagedBy: endpoints.ManagedBy,
	}); err != nil {
		s.Fatal(err)
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if *e.Conditions.Ready {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	return names
}

// A killed leader keeps its lease for a while. A proxy that stops meanwhile must not get
// requests, and what replaces it must.
func TestAStoppedProxyLeavesTheEndpointsWhileNoManagerLeads(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.startStandby()
	p.operator.stop(t)
	stopped := p.proxies()[0]
	if !slices.Contains(p.throughProxies(t.Context()), stopped.Name) {
		t.Fatalf("the proxy %s is no endpoint", stopped.Name)
	}
	if err := admin.Delete(t.Context(), &stopped, client.GracePeriodSeconds(int64(time.Hour.Seconds()))); err != nil {
		t.Fatal(err)
	}
	p.eventually("the proxy that stops gets no new requests, and another one does", func(ctx context.Context) bool {
		names := p.throughProxies(ctx)
		return len(names) == 2 && !slices.Contains(names, stopped.Name)
	})
	if selector := p.service("website").Spec.Selector; selector["serin.dev/proxy"] == "" {
		t.Errorf("the Service selects %v", selector)
	}
}

// service is a Service as it is now.
func (s *scene) service(name string) *corev1.Service {
	s.Helper()
	o := &corev1.Service{}
	if err := admin.Get(s.Context(), s.key(name), o); err != nil {
		s.Fatal(err)
	}
	return o
}
