// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

const (
	// page is how many items are asked for at once.
	page = 500
	// pages bounds a list: an API that never ends is not followed for ever.
	pages = 200
	// together is how many namespaces are asked at the same time.
	together = 8
)

// The resources that are listed.
const (
	trafficSplits = "trafficsplits"
	replicaSets   = "replicasets"
)

// Lister lists the TrafficMetrics of a resource, of all namespaces when namespace is
// "". A list in pieces goes on with the token continued.
type Lister func(ctx context.Context, resource, namespace, continued string) (*metricsv1.TrafficMetricsList, error)

// NewLister makes a Lister that asks the API server.
func NewLister(config *rest.Config, client *http.Client) (Lister, error) {
	scheme := runtime.NewScheme()
	if err := metricsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &metricsv1.GroupVersion, "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	api, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client of the TrafficMetrics API: %w", err)
	}
	return func(ctx context.Context, resource, namespace, continued string) (*metricsv1.TrafficMetricsList, error) {
		list := &metricsv1.TrafficMetricsList{}
		r := api.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Param("limit", strconv.Itoa(page))
		if continued != "" {
			r = r.Param("continue", continued)
		}
		warned := &warnings{}
		if err := r.WarningHandler(warned).Do(ctx).Into(list); err != nil {
			return list, err
		}
		return list, warned.err()
	}, nil
}

// errIncomplete is an answer of which the server says that something is missing. A version
// whose failures are missing would look good.
var errIncomplete = errors.New("the TrafficMetrics API says that its answer is not complete")

// warnings remembers whether a server warned.
type warnings struct{ warned bool }

// HandleWarningHeader is called for each warning; 299 is the code of those of Kubernetes
// APIs.
func (w *warnings) HandleWarningHeader(code int, _, _ string) { w.warned = w.warned || code == 299 }

func (w *warnings) err() error {
	if w.warned {
		return errIncomplete
	}
	return nil
}

// answer is what was listed of one namespace, or of all; problem says why nothing was.
type answer struct {
	readings map[types.NamespacedName]reading
	problem  string
}

// list asks for the splits of all namespaces at once, and of each one only where that is
// forbidden.
func (m *TrafficMetrics) list(ctx context.Context, namespaces []string) map[string]answer {
	if len(namespaces) == 0 {
		return nil
	}
	if !m.apart {
		a, err := m.all(ctx, trafficSplits, "")
		if !apierrors.IsForbidden(err) {
			return map[string]answer{"": a}
		}
		m.apart = true
	}
	return m.each(ctx, trafficSplits, namespaces)
}

// each asks for a resource of some namespaces, each by itself.
func (m *TrafficMetrics) each(ctx context.Context, resource string, namespaces []string) map[string]answer {
	answers := make([]answer, len(namespaces))
	var asking errgroup.Group
	asking.SetLimit(together)
	for i, namespace := range namespaces {
		asking.Go(func() error {
			var err error
			if answers[i], err = m.all(ctx, resource, namespace); err != nil {
				return nil //nolint:nilerr // the answer has it, for users
			}
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return nil
	}
	out := make(map[string]answer, len(namespaces))
	for i, namespace := range namespaces {
		out[namespace] = answers[i]
	}
	return out
}

// all reads a list to its end.
func (m *TrafficMetrics) all(ctx context.Context, resource, namespace string) (answer, error) {
	var items []metricsv1.TrafficMetrics
	var continued string
	for range pages {
		list, err := m.lister(ctx, resource, namespace, continued)
		if err != nil {
			return answer{problem: problem(err, resource, namespace)}, err
		}
		items = append(items, list.Items...)
		if continued = list.Continue; continued == "" {
			return answer{readings: readings(items, resource)}, nil
		}
	}
	return answer{problem: "the list of TrafficMetrics does not end"}, nil
}

// problem says what is wrong and what to do, without what a server answered.
func problem(err error, resource, namespace string) string {
	switch {
	case errors.Is(err, errIncomplete):
		return errIncomplete.Error()
	case apierrors.IsNotFound(err):
		return notServed
	case apierrors.IsForbidden(err):
		where := "in any namespace"
		if namespace != "" {
			where = fmt.Sprintf("in the namespace %q", namespace)
		}
		return "the operator is not allowed to list " + resource + " of metrics.smi-spec.io " + where + "; grant its service account that"
	case apierrors.IsServiceUnavailable(err):
		return "the TrafficMetrics API is not available; see kubectl get apiservice v1alpha1." + metricsv1.GroupVersion.Group
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return fmt.Sprintf("the TrafficMetrics API refuses the list with status %d", status.ErrStatus.Code)
	}
	return "the TrafficMetrics API could not be reached"
}

// notServed is what is wrong where the API is not served.
const notServed = "the cluster serves no TrafficMetrics; install the TrafficMetrics server with a Prometheus profile for the router"
