// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestWeightsAreInEffectWhenReported(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	for _, step := range []struct{ stable, canary int32 }{{1, 0}, {0, 1}, {1, 0}, {0, 5}, {1, 0}} {
		start := time.Now()
		r.want(t, traffic.ProtocolHTTP, stable.destination(step.stable), canary.destination(step.canary))
		t.Logf("live after %s", time.Since(start))
		want := "web-stable"
		if step.canary > 0 {
			want = "web-canary"
		}
		for range 50 {
			if code, body := get(t, r.url("/")); code != http.StatusOK || body != want {
				t.Fatalf("got %d %q, want the answer of %s", code, body, want)
			}
		}
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": stable.counts(), "web-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
}

func TestNoBackendToServe(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := startBackend(t, "web-stable", nil)
	r.want(t, traffic.ProtocolHTTP, stable.destination(0))
	code, body := get(t, r.url("/"))
	if code != http.StatusServiceUnavailable || !strings.HasPrefix(body, "serin proxy: ") {
		t.Errorf("got %d %q, want the proxy's own 503", code, body)
	}
}

// A backend with less than a part of the buckets has none whole, so nginx finds it by
// the look-up of single buckets only.
func TestSharesThatAreNoWholePercentagesAreKept(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	const n = 3000
	before := 0
	for _, share := range []float64{0.005, 0.025, 0.995} {
		r.want(t, traffic.ProtocolHTTP, stable.destination(int32(1000*(1-share))), canary.destination(int32(1000*share)))
		for range n {
			if code, body := get(t, r.url("/")); code != http.StatusOK {
				t.Fatalf("got %d %q", code, body)
			}
		}
		hits := canary.counts()["200"] - before
		before += hits
		if z := deviation(hits, n, share); math.Abs(z) > 5 {
			t.Errorf("the canary got %d of %d requests at %.1f %%, %.1f standard deviations off", hits, n, 100*share, z)
		}
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": stable.counts(), "web-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
}
