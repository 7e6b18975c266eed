// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// Metrics asks the TrafficMetrics API.
type Metrics struct{ rest rest.Interface }

// Metrics is a client of the TrafficMetrics API.
func (c *Cluster) Metrics() (*Metrics, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return newMetrics(config)
}

// MetricsAs is a client of the TrafficMetrics API, as [WatcherAs] is one of the others.
func MetricsAs(token string, cluster *rest.Config) (*Metrics, error) {
	return newMetrics(as(token, cluster))
}

func newMetrics(config *rest.Config) (*Metrics, error) {
	version := metricsv1.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // for errors only
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Metrics{client}, nil
}

// Question is what is asked for: all resources of a kind in a namespace ("" = all), or
// one by its name, or the edges of that one.
type Question struct {
	Kind      observe.Kind
	Namespace string
	Name      string
	Edges     bool
	Selector  string
}

// Place is where the question looks, for users.
func (q Question) Place() string {
	if !q.Kind.Namespaced || q.Namespace == "" {
		return "in the cluster"
	}
	return "in the namespace " + q.Namespace
}

// Get returns all items of the answer.
func (m *Metrics) Get(ctx context.Context, q Question) (*metricsv1.TrafficMetricsList, error) {
	list, err := m.page(ctx, q, "")
	for err == nil && list.Continue != "" {
		var next *metricsv1.TrafficMetricsList
		if next, err = m.page(ctx, q, list.Continue); err == nil {
			next.Items = append(list.Items, next.Items...)
			list = next
		}
	}
	if err != nil {
		return nil, m.explain(ctx, err, q)
	}
	return list, nil
}

func (m *Metrics) page(ctx context.Context, q Question, next string) (*metricsv1.TrafficMetricsList, error) {
	r := m.rest.Get().NamespaceIfScoped(q.Namespace, q.Kind.Namespaced && q.Namespace != "").Resource(q.Kind.Resource)
	if q.Name != "" {
		r = r.Name(q.Name)
	}
	if q.Edges {
		r = r.SubResource("edges")
	}
	if q.Selector != "" {
		r = r.Param("labelSelector", q.Selector)
	}
	if next != "" {
		r = r.Param("continue", next)
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // Raw would leave the server's words out
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	return decode(body)
}

// decode reads a list, or one item as a list of one.
func decode(body []byte) (*metricsv1.TrafficMetricsList, error) {
	var kind metav1.TypeMeta
	list := &metricsv1.TrafficMetricsList{}
	err := json.Unmarshal(body, &kind)
	switch {
	case err != nil:
	case kind.Kind == "TrafficMetrics":
		var one metricsv1.TrafficMetrics
		if err = json.Unmarshal(body, &one); err == nil {
			list.Resource, list.Items = one.Resource, []metricsv1.TrafficMetrics{one}
		}
	case kind.Kind == "TrafficMetricsList":
		err = json.Unmarshal(body, list)
	default:
		err = fmt.Errorf("the answer is of the kind %q", kind.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("read TrafficMetrics: %w", err)
	}
	list.TypeMeta = metav1.TypeMeta{APIVersion: metricsv1.GroupVersion.String(), Kind: "TrafficMetricsList"}
	return list, nil
}

// MissingError is that of a resource that does not exist, or has no figures.
type MissingError struct{ text string }

func (e MissingError) Error() string { return e.text }

// explain says what to do about an error.
func (m *Metrics) explain(ctx context.Context, err error, q Question) error {
	switch {
	case apierrors.IsNotFound(err) && !m.served(ctx):
		return fmt.Errorf("this cluster does not serve TrafficMetrics (%s): install what measures its traffic, such as Serin with serin metrics", metricsv1.GroupVersion)
	case apierrors.IsNotFound(err) && q.Name != "":
		return MissingError{fmt.Sprintf("there is no %s %s %s, or it is not measured", strings.ToLower(q.Kind.Kind), q.Name, q.Place())}
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("TrafficMetrics can't be read at present: %w; see kubectl get apiservice %s.%s", err, metricsv1.GroupVersion.Version, metricsv1.GroupVersion.Group)
	}
	return err
}

// served is whether there is the API at all. It is when that is not known.
func (m *Metrics) served(ctx context.Context) bool {
	err := m.rest.Get().AbsPath("/apis/" + metricsv1.GroupVersion.String()).Do(ctx).Error()
	return !apierrors.IsNotFound(err)
}
