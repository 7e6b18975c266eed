// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/controllers/sampling"
)

// TestReleasesAreMeasuredThroughTheAPIAsSoonAsItIsThere has the operator's reader ask
// before anybody serves the API, and after.
func TestReleasesAreMeasuredThroughTheAPIAsSoonAsItIsThere(t *testing.T) {
	manager := managerConfig(t)
	lister, err := sampling.NewLister(manager, httpClient(t, manager))
	if err != nil {
		t.Fatal(err)
	}
	m := sampling.NewTrafficMetrics(lister, clock.RealClock{}, nil)
	go func() {
		if err := m.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	const measuredSpace = "measured"
	key := types.NamespacedName{Namespace: measuredSpace, Name: "web"}
	if err := m.Measure(t.Context(), key, analysis.Subject{Split: key.Name, Stable: "web-v1", Canary: "web-v2"}, analysis.Weight{Percent: 10, Since: time.Now().Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody serves the API", func() error {
		if _, health := m.Windows(key, time.Time{}); health.Message == "" {
			return errors.New("nothing is said")
		}
		return nil
	})
	installTraffic(t)
	source := &seen{}
	serveTraffic(t, source).join(t)
	serving(t)
	snapshot := stageTraffic(t, measuredSpace)
	snapshot.End = time.Now().Truncate(time.Second)
	snapshot.Start = snapshot.End.Add(-30 * time.Second)
	source.set(snapshot, nil)
	eventually(t, "a window of both versions", func() error {
		windows, health := m.Windows(key, time.Time{})
		if len(windows) == 0 {
			return errors.New(health.Message)
		}
		w := windows[0]
		if w.Stable != (analysis.Variant{Requests: 90}) || w.Canary != (analysis.Variant{Requests: 10, Failures: 2}) || !w.End.Equal(snapshot.End) {
			t.Fatalf("%+v", w)
		}
		return nil
	})
}

func httpClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
