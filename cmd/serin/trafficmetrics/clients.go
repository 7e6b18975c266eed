// SPDX-License-Identifier: Apache-2.0

package trafficmetrics

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/serin-dev/serin/cmd/serin/connect"
	"github.com/serin-dev/serin/metricsapi/inventory"
)

// clients are the clients of serin metrics.
type clients struct {
	config     *rest.Config
	kubernetes kubernetes.Interface
	metadata   metadata.Interface
	dynamic    dynamic.Interface
}

func newClients() (clients, error) {
	found, err := connect.Config("serin-metrics")
	if err != nil {
		return clients{}, err
	}
	// Ten thousands of pods are read much faster in the binary form.
	binary := rest.CopyConfig(found)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c := clients{config: found}
	var errs [3]error
	c.kubernetes, errs[0] = kubernetes.NewForConfig(binary)
	c.metadata, errs[1] = metadata.NewForConfig(found)
	c.dynamic, errs[2] = dynamic.NewForConfig(found)
	if err := errors.Join(errs[:]...); err != nil {
		return c, fmt.Errorf("make clients of the API: %w", err)
	}
	return c, nil
}

// inventory are the options of an inventory of the cluster.
func (c clients) inventory(ctx context.Context, wall clock.WithTicker) inventory.Options {
	return inventory.Options{
		Kubernetes: c.kubernetes, Metadata: c.metadata, Dynamic: c.dynamic, Discovery: c.kubernetes.Discovery(),
		Clock: wall, Log: ctrl.LoggerFrom(ctx).WithName("inventory"),
	}
}
