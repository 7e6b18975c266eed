// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/cmd/serin/tracing"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/skew"
	"github.com/serin-dev/serin/skew/kinds"
)

// checkKinds refuses to run with kinds that this version of the operator may not know, or that
// drop what it writes. Where the cluster does not say of which version they are, it runs.
func checkKinds(ctx context.Context, cluster discovery.OpenAPIV3SchemaInterface, version string) error {
	found, err := kinds.Version(cluster.OpenAPIV3())
	if err != nil {
		ctrllog.FromContext(ctx).Info("Could not read the version of the CustomResourceDefinitions", "reason", err.Error())
		return nil
	}
	why := skew.Refusal(skew.Part{Name: "the operator", Version: version}, skew.Part{Name: "its CustomResourceDefinitions in the cluster", Version: found})
	if why == "" {
		return nil
	}
	return errors.New(why + ": upgrade the chart by one minor version at a time, with crds.serin=true or with the definitions of each version")
}

// traceFlush is how long the end waits for traces that are left to be taken.
const traceFlush = 3 * time.Second

// startTraces begins to export traces where that is on, until stop is called.
func (o *managerOptions) startTraces(ctx context.Context) (stop func(), err error) {
	if !o.tracing {
		return func() {}, nil
	}
	roots, err := publicRoots()
	if err != nil {
		return nil, err
	}
	if o.traces, err = tracing.Start(ctx, build.Version(), roots); err != nil {
		return nil, fmt.Errorf("--tracing: %w", err)
	}
	return func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		if err := o.traces.Stop(ending); err != nil {
			ctrllog.FromContext(ctx).Info("The last traces were not exported", "reason", err.Error())
		}
	}, nil
}

const (
	// startUp is how long controllers take to read what they watch, and to look at all of it once.
	startUp = 30 * time.Second
	// releases is how often memory is returned, since a busy machine takes longer.
	releases = 4
)

// addRelease has the memory returned that the first look at everything took: without it, the
// Go runtime keeps room for garbage that it does not make again.
func addRelease(mgr manager.Manager, clock clock.Clock) error {
	collected := keepGarbage(debug.SetGCPercent(startGC))
	// A replica that waits for the lease has caches to fill too.
	started := admission.EveryReplica(func(ctx context.Context) error {
		defer collected.started()
		select {
		case <-clock.After(releases * startUp):
		case <-ctx.Done():
		}
		return nil
	})
	if err := mgr.Add(started); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { // of the leader, which watches most
		collected.starts()
		defer collected.started()
		for range releases {
			select {
			case <-clock.After(startUp):
			case <-ctx.Done():
				return nil
			}
			if mgr.GetCache().WaitForCacheSync(ctx) {
				debug.FreeOSMemory()
			}
		}
		return nil
	}))
}
