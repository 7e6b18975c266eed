// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease"
	"github.com/serin-dev/serin/controllers/canaryrelease/chart"
)

// canaryWorkers are few: one may be in the middle of a Helm upgrade for minutes, and
// another must not wait for it.
const canaryWorkers = 4

// canaryWindow is how often the traffic of canaries is counted. Users read the figures, and
// nothing is decided by them.
const canaryWindow = 15 * time.Second

// addCanaryReleases adds the controller of CanaryReleases, if there is a ServiceAccount
// that it may call Helm as.
func (o *managerOptions) addCanaryReleases(mgr manager.Manager) error {
	account := o.canaryServiceAccount
	if account == "" {
		return nil
	}
	// Those of Rollouts are known by the names of Rollouts, which may be those of Services.
	measured := newProxies(mgr, canaryWindow, nil)
	if err := mgr.Add(measured); err != nil {
		return err
	}
	return canaryrelease.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManagerCanaryRelease), canaryrelease.Options{
		Releases: chart.New(mgr.GetConfig(), account), Clock: clock.RealClock{}, Concurrency: canaryWorkers, Account: account, Measurements: measured,
		As: func(namespace string) (client.Client, error) {
			return client.New(as(mgr.GetConfig(), namespace, account), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
		},
	}).SetupWithManager(mgr)
}

// as is a configuration that acts as a ServiceAccount.
func as(config *rest.Config, namespace, account string) *rest.Config {
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account)}
	return c
}
