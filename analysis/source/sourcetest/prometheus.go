// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Prometheus runs a real one with a configuration until the test ends. Where there is none
// the test is left out, but never in continuous integration.
func Prometheus(tb testing.TB, config string) (address string) {
	tb.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal("there is no prometheus: install the package prometheus (make packages)")
		}
		tb.Skip("LEFT OUT: there is no prometheus; install the package prometheus (make packages)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), program, "--config.file="+file, "--web.listen-address="+listen,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=error")
	command.Stdout, command.Stderr = io.Discard, io.Discard
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			tb.Error(err)
		}
		if err := command.Wait(); err == nil {
			tb.Error("it ended before it was killed")
		}
	})
	return "http://" + listen
}
