// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/config/testenv"
)

// remedy is what to do where there is no Prometheus.
const remedy = "install the package prometheus (make packages)"

// Prometheus runs a real one with a configuration until the test ends. Without one the
// test is not possible.
func Prometheus(tb testing.TB, config string) (address string) {
	tb.Helper()
	return PrometheusAt(tb, "127.0.0.1", config)
}

// PrometheusAt runs one that listens at another address of this machine.
func PrometheusAt(tb testing.TB, host, config string) (address string) {
	tb.Helper()
	return start(tb, host, config)
}

// start runs a Prometheus with more flags.
func start(tb testing.TB, host, config string, flags ...string) (address string) {
	tb.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		testenv.Missing(tb, "there is no prometheus", remedy)
	}
	port, err := testenv.FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	listen := net.JoinHostPort(host, strconv.Itoa(int(port)))
	dir := tb.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	flags = append(flags, "--config.file="+file, "--web.listen-address="+listen, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=error")
	command := exec.CommandContext(tb.Context(), program, flags...)
	var said strings.Builder
	command.Stdout, command.Stderr = io.Discard, &said
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	stop := func() error {
		_ = command.Process.Kill() // or it has ended, which Wait says
		return <-ended
	}
	address = "http://" + listen
	for range readyTries {
		select {
		case err := <-ended:
			tb.Fatalf("prometheus ended: %v: %s", err, &said)
		case <-time.After(readyPause):
		}
		if ready(tb.Context(), address) {
			tb.Cleanup(func() {
				if err := stop(); err == nil {
					tb.Error("prometheus ended before it was killed")
				}
			})
			return address
		}
	}
	tb.Fatalf("prometheus is not ready: %v: %s", stop(), &said)
	return ""
}

const (
	// readyTries and readyPause bound how long a Prometheus may take to be ready.
	readyTries = 600
	readyPause = 100 * time.Millisecond
)

// ready asks a Prometheus whether it takes queries.
func ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/-/ready", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
