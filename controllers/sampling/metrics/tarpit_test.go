// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// slow takes its time, or that of its context.
type slow time.Duration

func (s slow) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	select {
	case <-time.After(time.Duration(s)):
	case <-ctx.Done():
	}
	return source.Sample{At: at, Value: 1}, nil
}

// Of ten tenants, one has fifty endpoints that never answer. The metrics of the others are
// measured in each of their intervals.
func TestATarpitOfOneTenantDelaysTheMetricsOfNoOther(t *testing.T) {
	const tenants, hanging, interval, lasts = 10, 50, analysis.WindowLength, time.Minute
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.AnalysisResult{}).Build()
		l := New(func(m resolve.Metric) (source.Measurer, error) {
			if m.Name == "hangs" {
				return slow(fetch.DefaultTimeout), nil
			}
			return slow(50 * time.Millisecond), nil
		}, api, clock.RealClock{}, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Start(ctx) }()
		metric := func(name string) resolve.Metric {
			m := metricOf(name)
			m.Interval = interval
			return m
		}
		for i := range hanging {
			l.Watch(types.NamespacedName{Namespace: "tarpit", Name: fmt.Sprint("r", i)}, releaseOf(metric("hangs")))
		}
		time.Sleep(30 * time.Second) // it has all that it can get
		begun := time.Now()
		for i := range tenants - 1 {
			l.Watch(types.NamespacedName{Namespace: fmt.Sprint("tenant", i), Name: "website"}, releaseOf(metric("a"), metric("b")))
		}
		time.Sleep(lasts)
		for i := range tenants - 1 {
			for _, series := range l.Samples(types.NamespacedName{Namespace: fmt.Sprint("tenant", i), Name: "website"}) {
				if n := len(series.Samples); n < int(lasts/interval) {
					t.Errorf("tenant %d: %d measurements in %d intervals", i, n, lasts/interval)
				}
				for j, s := range series.Samples {
					if late := s.Known.Sub(begun) - time.Duration(j)*interval; late >= interval {
						t.Errorf("tenant %d: measurement %d is %s late", i, j, late)
						break
					}
				}
			}
		}
		if s := l.Samples(types.NamespacedName{Namespace: "tarpit", Name: "r0"}); len(s[0].Samples) == 0 {
			t.Error("the tarpit was not measured")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
