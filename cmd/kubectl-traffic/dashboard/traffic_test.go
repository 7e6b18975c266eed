// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
)

// chain are Deployments of which each calls the next; the last one has the most requests.
type chain struct {
	length int
	wrong  atomic.Pointer[error]
}

func (c *chain) Get(_ context.Context, q cli.Question) (*metricsv1.TrafficMetricsList, error) {
	if wrong := c.wrong.Load(); wrong != nil {
		return nil, *wrong
	}
	list := &metricsv1.TrafficMetricsList{}
	for i := 1; i < c.length; i++ {
		name := fmt.Sprintf("app-%03d", i)
		if q.Name != "" && q.Name != name {
			continue
		}
		m := metricsv1.TrafficMetrics{
			Resource: corev1.ObjectReference{Kind: q.Kind.Kind, Namespace: q.Namespace, Name: name},
			Edge:     metricsv1.Edge{Direction: metricsv1.DirectionFrom, Side: metricsv1.SideServer},
			Window:   metav1.Duration{Duration: time.Second},
			Metrics:  []metricsv1.Metric{{Name: metricsv1.MetricSuccessCount, Value: *resource.NewQuantity(int64(i), resource.DecimalSI)}, {Name: metricsv1.MetricFailureCount, Value: resource.MustParse("0")}},
		}
		if q.Edges {
			m.Edge.Resource = &corev1.ObjectReference{Kind: q.Kind.Kind, Namespace: q.Namespace, Name: fmt.Sprintf("app-%03d", i-1)}
		}
		list.Items = append(list.Items, m)
	}
	return list, nil
}

type callsSent struct {
	Namespace, Missing string
	LeftOut            int
	trafficstats.Topology
}

func TestWhoCallsWhomIsSentAndReadAgain(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	metrics := &chain{length: 3}
	l := listenAt(t, c, viewers{"jane": {Metrics: metrics, Namespace: "shop"}}, "jane", "/api/calls")
	goOn(t, c)
	first := until(l, "calls", func(s callsSent) bool { return len(s.Edges) == 2 })
	if e := first.Edges[1]; first.Namespace != "shop" || len(first.Nodes) != 3 || e.From.Name != "app-001" || e.To.Name != "app-002" || *e.RequestsPerSecond != 2 {
		t.Errorf("the calls are %+v", first)
	}
	metrics.wrong.Store(new(errors.New("the source is down")))
	until(l, "calls", func(s callsSent) bool {
		return len(s.Edges) == 0 && s.Missing == "Who calls whom is not known: the source is down."
	})
	metrics.wrong.Store(nil)
	until(l, "calls", func(s callsSent) bool { return len(s.Edges) == 2 && s.Missing == "" })
}

func TestOfManyResourcesThoseWithTheMostRequestsAreAskedWhoCallsThem(t *testing.T) {
	l := listen(t, viewers{"jane": {Metrics: &chain{length: 101}}}, "jane", "/api/calls?namespace=shop&kind=services")
	until(l, "calls", func(s callsSent) bool {
		return s.LeftOut == 40 && len(s.Edges) == 60 && s.Edges[0].From.Name == "app-040" && s.Edges[0].To.Kind == "Service"
	})
}

func TestCallsBetweenOtherKindsAreRefused(t *testing.T) {
	h := dashboard.NewHandler(dashboard.Options{Viewers: viewers{"jane": {Metrics: &chain{}}}, Origins: []string{origin}, Clock: clock.RealClock{}})
	r, answer := httptest.NewRequest(http.MethodGet, origin+"/api/calls?kind=pods", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", "jane")
	h.ServeHTTP(answer, r)
	if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "kind must be deployments or services") {
		t.Errorf("the answer is %d %s", answer.Code, answer.Body)
	}
}

func TestWithoutTrafficMetricsNothingIsKnownOfCalls(t *testing.T) {
	l := listen(t, viewers{"jane": {}}, "jane", "/api/calls?namespace=shop")
	until(l, "calls", func(s callsSent) bool {
		return s.Missing == "Who calls whom is not known: the dashboard reads no TrafficMetrics."
	})
}
