// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease"
	"github.com/serin-dev/serin/controllers/canaryrelease/child"
)

// canaryWorkers are more than the slots for Helm by far: one may be in the middle of an upgrade
// for minutes, and those of a namespace that waits for slots must not be all of them.
const canaryWorkers = 32

// helmProgram is the name of the program that runs Helm.
const helmProgram = "serin-helm"

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
	program, err := beside(helmProgram)
	if err != nil {
		return err
	}
	helm := child.New(mgr.GetConfig(), child.Options{Program: program, Account: account})
	// Those of Rollouts are known by the names of Rollouts, which may be those of Services.
	measured, err := newProxies(mgr, "canary-traffic", canaryWindow, nil)
	if err != nil {
		return err
	}
	for work, slots := range helm.Slots() {
		if err := reportSlots(work, slots); err != nil {
			return err
		}
	}
	if err := mgr.Add(measured); err != nil {
		return err
	}
	return canaryrelease.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManagerCanaryRelease), canaryrelease.Options{
		Live:     mgr.GetAPIReader(),
		Releases: helm, Clock: clock.RealClock{}, Concurrency: canaryWorkers, Account: account, Measurements: measured,
		NamespacedOnly: !o.scope.clusterObjects,
		As: func(namespace string) (client.Client, error) {
			return client.New(helm.As(namespace), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
		},
	}).SetupWithManager(mgr)
}

// beside is a program in the folder of this one.
func beside(name string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the folder of the program %s: %w", name, err)
	}
	return filepath.Join(filepath.Dir(own), name), nil
}
