// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// birds is a split that was programmed.
func birds() *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "birds"}}
	split.Spec = splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{{Service: "v1", Weight: 90}, {Service: "v2", Weight: 10}}}
	split.Status.Backends = []splitv1.BackendStatus{{Service: "v1", Weight: 90}, {Service: "v2", Weight: 10}}
	for _, kind := range []string{splitv1.ConditionAccepted, splitv1.ConditionResolvedRefs, splitv1.ConditionProgrammed} {
		split.Status.Conditions = append(split.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	return split
}

// counting are TrafficMetrics whose windows end now; with wrong there are none.
type counting struct {
	wrong atomic.Pointer[error]
	clock *clocktesting.FakeClock
}

func (c *counting) Get(_ context.Context, q cli.Question) (*metricsv1.TrafficMetricsList, error) {
	if wrong := c.wrong.Load(); wrong != nil {
		return nil, *wrong
	}
	list := &metricsv1.TrafficMetricsList{}
	for name, requests := range map[string]string{"v1": "90", "v2": "10"} {
		list.Items = append(list.Items, metricsv1.TrafficMetrics{
			Resource: corev1.ObjectReference{Kind: q.Kind.Kind, Namespace: "shop", Name: "birds"}, Backend: &metricsv1.Backend{Name: name},
			Edge:      metricsv1.Edge{Direction: metricsv1.DirectionFrom, Side: metricsv1.SideServer},
			Timestamp: metav1.NewTime(c.clock.Now()), Window: metav1.Duration{Duration: time.Second},
			Metrics: []metricsv1.Metric{{Name: metricsv1.MetricSuccessCount, Value: resource.MustParse(requests)}, {Name: metricsv1.MetricFailureCount, Value: resource.MustParse("0")}},
		})
	}
	return list, nil
}

type splits struct {
	Rows     []view.Split
	Gone     []string
	Complete bool
}

type missing struct{ Missing string }

func TestSplitsAreSentWithWhatWasMeasuredAndThenWhatChanges(t *testing.T) {
	api, watched := watching(cluster(t, birds()).Build())
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	metrics := &counting{clock: c}
	l := listenAt(t, c, viewers{"jane": {API: api, Metrics: metrics}}, "jane", "/api/traffic")
	goOn(t, c)
	until(l, "rows", func(s splits) bool { return s.Complete && len(s.Rows) == 1 })
	first := until(l, "rows", func(s splits) bool {
		return len(s.Rows) == 1 && s.Rows[0].Shares[1].Measured != nil && s.Rows[0].Shares[1].Check.Requests >= 200
	}).Rows[0]
	if first.Group != view.Stable || *first.Shares[1].Measured != 10 || first.Shares[1].Check.Verdict != view.Fits {
		t.Errorf("split: %+v", first)
	}
	metrics.wrong.Store(new(errors.New("the source is down")))
	until(l, "measured", func(m missing) bool {
		return strings.Contains(m.Missing, "Measured shares are left out: the source is down.")
	})
	until(l, "rows", func(s splits) bool { return len(s.Rows) == 1 && s.Rows[0].Shares[1].Measured == nil })
	metrics.wrong.Store(nil)
	until(l, "measured", func(m missing) bool { return m.Missing == "" })
	<-watched
	if err := api.Delete(t.Context(), birds()); err != nil {
		t.Fatal(err)
	}
	until(l, "rows", func(s splits) bool { return len(s.Gone) == 1 && s.Gone[0] == "shop/birds" })
}

// goOn has the time go on until the test ends.
func goOn(t *testing.T, c *clocktesting.FakeClock) {
	t.Helper()
	ctx, ticker := t.Context(), time.NewTicker(time.Millisecond)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C: // real time, in which the server gets on
				c.Step(time.Second)
			}
		}
	}()
}

func TestWithoutTrafficMetricsSplitsAreSentAllTheSame(t *testing.T) {
	l := listen(t, viewers{"jane": {API: cluster(t, birds()).Build()}}, "jane", "/api/traffic?namespace=shop")
	until(l, "measured", func(m missing) bool { return strings.Contains(m.Missing, "reads no TrafficMetrics") })
	until(l, "rows", func(s splits) bool { return s.Complete && len(s.Rows) == 1 && s.Rows[0].Shares[1].Declared == 10 })
}

// cache is a CanaryRelease about which a user decides.
func cache() *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", UID: "u", Generation: 7}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Config: "cache: big"}
	return cr
}

type canaries struct {
	Rows     []view.CanaryRow
	Complete bool
}

type canary struct {
	Canary *view.Canary
	Gone   bool
}

func TestCanariesAreSentAndTheirPageIsLive(t *testing.T) {
	api, watched := watching(cluster(t, cache()).Build())
	all := listen(t, viewers{"jane": {API: api}}, "jane", "/api/canaries")
	until(all, "rows", func(c canaries) bool { return c.Complete && len(c.Rows) == 1 && c.Rows[0].Release == "shop" })
	one := listen(t, viewers{"jane": {API: api}}, "jane", "/api/canaries/shop/cache")
	first := until(one, "canary", func(c canary) bool { return c.Canary != nil }).Canary
	if first.Values != "cache: big" || len(first.Missing) > 1 || first.Actions[0].Disabled != "" { // the fake cluster finds no events by fields
		t.Errorf("canary: %+v", first)
	}
	<-watched
	<-watched
	cr := cache()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
		t.Fatal(err)
	}
	cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionAdopted, Message: "Asked for."}
	if err := api.Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	until(one, "canary", func(c canary) bool { return c.Canary != nil && c.Canary.Decision != nil })
	if err := api.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	until(one, "canary", func(c canary) bool { return c.Gone })
}

func TestACanaryIsEndedAsTheQuestionAsked(t *testing.T) {
	for _, test := range []struct {
		name, body string
		readOnly   bool
		status     int
		want       string
		transition v1alpha1.CanaryTransition
	}{
		{"adopted", `{"action":"Adopted","revision":"7"}`, false, http.StatusOK, "Requested: Adopted.", v1alpha1.CanaryTransitionAdopted},
		{"deprecated", `{"action":"Deprecated","revision":"7"}`, false, http.StatusOK, "Requested: Deprecated.", v1alpha1.CanaryTransitionDeprecated},
		{"another spec", `{"action":"Adopted","revision":"6"}`, false, http.StatusConflict, "was changed since the page asked", ""},
		{"no spec", `{"action":"Adopted"}`, false, http.StatusConflict, "was changed since the page asked", ""},
		{"no action", `{"action":"","revision":"7"}`, false, http.StatusConflict, "There is no action", ""},
		{"another action", `{"action":"Promote","revision":"7"}`, false, http.StatusConflict, "There is no action", ""},
		{"read-only", `{"action":"Adopted","revision":"7"}`, true, http.StatusForbidden, "--read-only", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := cluster(t, cache()).WithInterceptorFuncs(interceptor.Funcs{}).Build()
			h := dashboard.NewHandler(dashboard.Options{Viewers: viewers{"jane": {API: api}}, Origins: []string{origin}, ReadOnly: test.readOnly, Clock: clocktesting.NewFakeClock(time.Now())})
			r := httptest.NewRequest(http.MethodPost, origin+"/api/canaries/shop/cache/actions", strings.NewReader(test.body))
			r.Header.Set("Origin", origin)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "jane")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("status %d, %s", w.Code, w.Body)
			}
			cr := cache()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil || cr.Spec.Transition != test.transition {
				t.Errorf("it is %q, %v", cr.Spec.Transition, err)
			}
		})
	}
}
