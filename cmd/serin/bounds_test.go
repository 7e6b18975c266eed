// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/smi"
)

// recording is a manager that keeps what is added to it.
type recording struct {
	manager.Manager
	added []manager.Runnable
}

func (r *recording) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

func newRecording(t *testing.T, o managerOptions) *recording {
	t.Helper()
	scheme := newScheme(o.splits)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &informertest.FakeInformers{Scheme: scheme}, nil
		},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return testrestmapper.TestOnlyStaticRESTMapper(scheme), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &recording{Manager: mgr}
}

// Every controller that is added, also one that is added later, has to be bounded, and traced.
func TestEveryControllerIsBounded(t *testing.T) {
	o := managerOptions{
		splits:     traffic.Served{Version: splitv1.GroupVersion.Version},
		proxyImage: "serin", defaultRouter: "nginx", canaryServiceAccount: "serin-canary", window: 5 * time.Second, workers: 8,
		smiSettle: smi.DefaultSettle, scope: scopeOptions{clusterObjects: true}, proxyPods: proxyPodOptions{replicas: 2, autoscaling: "auto"}, admission: admissionOptions{mode: "policies"},
	}
	mgr := newRecording(t, o)
	if err := o.addControllers(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, runnable := range mgr.added {
		c := reflect.Indirect(reflect.ValueOf(runnable))
		if c.Kind() != reflect.Struct || !c.FieldByName("ReconciliationTimeout").IsValid() {
			continue // no controller
		}
		name := c.FieldByName("Name").String()
		names = append(names, name)
		if deadline := time.Duration(c.FieldByName("ReconciliationTimeout").Int()); deadline < bounds.Deadline || deadline > 30*time.Minute {
			t.Errorf("controller %s: a reconcile may take %s", name, deadline)
		}
		if do := c.FieldByName("Do").Elem(); do.Type() != reflect.TypeFor[reconcile.Func]() {
			t.Errorf("controller %s has no traces: its reconciler is a %s", name, do.Type())
		}
		limiter, ok := reflect.TypeAssert[workqueue.TypedRateLimiter[reconcile.Request]](c.FieldByName("RateLimiter"))
		if !ok {
			t.Errorf("controller %s has no rate limiter", name)
			continue
		}
		var wait time.Duration
		for range 100 {
			wait = max(wait, limiter.When(reconcile.Request{}))
		}
		if wait < 10*time.Second || wait > 30*time.Second {
			t.Errorf("controller %s waits for up to %s between two tries", name, wait)
		}
	}
	slices.Sort(names)
	if want := []string{"canaryrelease", "freeze", "proxyendpoints", "rollout", "trafficsplit"}; !slices.Equal(names, want) {
		t.Errorf("controllers %v, want %v", names, want)
	}
}
