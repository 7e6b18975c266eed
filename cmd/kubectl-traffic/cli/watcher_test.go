// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// Whatever else the process could use as credentials, the API server sees the token of the viewer.
func TestAWatcherHasTheTokenItIsMadeForAndNoOtherCredentials(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if who := r.Header.Get("Authorization") + r.Header.Get("Impersonate-User"); !slices.Contains(seen, who) {
			seen = append(seen, who)
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	own := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(own, []byte("the server's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cluster := &rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerToken: "the server's own", BearerTokenFile: own, Username: "root", Password: "secret",
		Impersonate: rest.ImpersonationConfig{UserName: "root"},
	}
	api, err := cli.WatcherAs("jane's", cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.List(t.Context(), &v1alpha1.RolloutList{}); err == nil {
		t.Error("the answer 403 is no error")
	}
	if _, err := api.Watch(t.Context(), &v1alpha1.RolloutList{}); err == nil {
		t.Error("the answer 403 is no error")
	}
	metrics, err := cli.MetricsAs("jane's", cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.Get(t.Context(), cli.Question{Kind: observe.TrafficSplits, Namespace: "shop"}); err == nil {
		t.Error("the answer 403 is no error")
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, []string{"Bearer jane's"}) {
		t.Errorf("the API server saw %q", seen)
	}
}
