// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// Of ten tenants, one has fifty endpoints that never answer. The operator's loop, with its
// client and the providers, measures the metrics of the others again and again while all that
// it gives to the one hang.
func TestATarpitOfOneTenantDelaysTheMeasurementsOfNoOther(t *testing.T) {
	const tenants, hanging, measurements, slots = 10, 50, 5, 32
	var hangs atomic.Int32
	tarpit := sourcetest.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		hangs.Add(1)
		defer hangs.Add(-1)
		<-r.Context().Done()
	})
	quick := sourcetest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(`{"a": 1}`)); err != nil {
			t.Error(err)
		}
	})
	p := providers()
	clock := clocktesting.NewFakeClock(sourcetest.Now)
	p.Caller, p.Clock = sourcetest.Caller(time.Hour), clock
	scheme := p.Reader.(client.Client).Scheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.AnalysisResult{}).Build()
	l := metrics.New(p.Build, api, clock, metrics.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	watch := func(namespace, name, url string) {
		m := metric(basic(v1alpha1.ProviderWeb, v1alpha1.BasicProviders{Web: &v1alpha1.WebQuery{URL: v1alpha1.URL(url), JSONPath: "{.a}"}}))
		m.Release.Namespace, m.Release.Name = namespace, name
		l.Watch(types.NamespacedName{Namespace: namespace, Name: name}, metrics.Release{Owner: "uid", Revision: "abc", Weight: analysis.Weight{Percent: 10}, Metrics: []resolve.Metric{m}})
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		if !goOn(clock, l, holds) {
			t.Fatalf("%s: did not happen; %d requests hang", what, hangs.Load())
		}
	}
	for i := range hanging {
		watch("tarpit", fmt.Sprint("r", i), tarpit)
	}
	until("the tarpit has what it gets", func() bool { return hangs.Load() >= slots/2 })
	for i := range tenants - 1 {
		watch(fmt.Sprint("tenant", i), "website", quick)
	}
	for i := range tenants - 1 {
		until("all metrics of the others", func() bool {
			samples := l.Samples(types.NamespacedName{Namespace: fmt.Sprint("tenant", i), Name: "website"})[0].Samples
			return len(samples) >= measurements && samples[measurements-1].Reason == ""
		})
	}
	if n := hangs.Load(); n != slots/2 {
		t.Errorf("%d requests of one tenant hang", n)
	}
}

// goOn has the time go on, a minute at a time, until a condition holds, and reports whether it does.
func goOn(clock *clocktesting.FakeClock, l *metrics.Loop, holds func() bool) bool {
	limit, progress := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer progress.Stop()
	for !holds() {
		select {
		case <-l.Changed():
		case <-progress.C: // real time, in which the servers get on
			clock.Step(time.Minute)
		case <-limit:
			return false
		}
	}
	return true
}
