// SPDX-License-Identifier: Apache-2.0

package trafficmetrics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/inventory"
)

func TestAPrometheusIsChosenByFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := write("own.yaml", "views: [{side: client, counters: [{metric: x_total, statusLabel: code}], server: {service: {label: service}}}]")
	bad := write("bad.yaml", "views: []")
	const address = "--prometheus-address=http://prometheus.monitoring:9090"
	for _, tt := range []struct{ name, args, want string }{
		{"a Prometheus", "--prometheus-profile=linkerd " + address, ""},
		{"an own profile", "--prometheus-profile-file=" + own + " " + address, ""},
		{"an own profile that can't be", "--prometheus-profile-file=" + bad + " " + address, "--prometheus-profile-file: views: empty; add at least one place of measurement"},
		{"no profile", address, "--prometheus-profile: give it or --prometheus-profile-file"},
		{"a profile that there is not", "--prometheus-profile=x " + address, `--prometheus-profile: "x"; give one of envoy-gateway, istio, linkerd, nginx, traefik, or a file of your own`},
		{"no address", "--prometheus-profile=istio", "--prometheus-address: is not an http or https URL; write it like http://prometheus.monitoring:9090"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parts := sourceParts{Inventory: inventory.NewStore(), Clock: clock.RealClock{}}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			parts.Settings.bind(flags)
			if err := flags.Parse(strings.Fields(tt.args)); err != nil {
				t.Fatal(err)
			}
			source, err := sources["prometheus"](t.Context(), parts)
			var got string
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || err == nil && source == nil {
				t.Fatalf("%q, source %v", got, source)
			}
		})
	}
}
