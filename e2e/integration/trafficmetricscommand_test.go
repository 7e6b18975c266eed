// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/serin-dev/serin/certificate"
	"github.com/serin-dev/serin/e2e/tools"
)

// command is serin metrics as a process, with the rights of the chart's service account.
type command struct {
	*replica
	log     bytes.Buffer
	process *exec.Cmd
}

// builtCommand is the binary of this checkout.
var builtCommand = sync.OnceValues(func() (string, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return "", err
	}
	return checkout.Program(context.Background(), "cmd/serin") // for all tests that run it
})

// startCommand starts it, and returns when it is ready. It must have ended by the end of
// the test.
func startCommand(t testing.TB, args ...string) *command {
	t.Helper()
	binary, err := builtCommand()
	if err != nil {
		t.Fatal(err)
	}
	config, err := plane.ConfigFor("system:serviceaccount:"+operatorSpace+":"+metricsService, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ownAddress(t).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	c := &command{replica: &replica{address: free.Addr().(*net.TCPAddr)}}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"metrics", "--bind-address=" + c.address.String(), "--namespace=" + operatorSpace, "--service=" + metricsService, "--shutdown-delay=1s",
	}, args...)
	c.process = exec.Command(binary, args...)
	c.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(t, config, ""))
	c.process.Stderr = &c.log
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.process.ProcessState == nil {
			t.Errorf("it was not stopped: %v", c.process.Process.Kill())
			_ = c.process.Wait()
		}
		if t.Failed() {
			t.Logf("it says:\n%s", c.log.String())
		}
	})
	eventually(t, "the server is ready", func() error {
		response, err := c.ask(t, "/readyz?verbose")
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", response.Status)
		}
		return nil
	})
	return c
}

// ask asks the server past the API server, without a name.
func (c *command) ask(t testing.TB, path string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.address.String()+path, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: neverAfter}).Do(request)
	if err != nil {
		return nil, err
	}
	return response, response.Body.Close()
}

// end asks it to stop and returns how it ended.
func (c *command) end() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.process.Wait()
}

func TestTheCommandServesTrafficMetricsWithTheChartsRights(t *testing.T) {
	installTraffic(t)
	c := startCommand(t, "--certificate-secret="+metricsService, "--source=none")
	c.join(t)
	serving(t)
	err := rawClient(t).Get().AbsPath(root + "/pods").MaxRetries(0).Do(t.Context()).Error()
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "--source") {
		t.Errorf("without a source: %v", err)
	}
	if response, err := c.ask(t, root+"/pods"); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a name: %v %v", response, err)
	}
	if err := c.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if log := c.log.String(); strings.Contains(log, "forbidden") || strings.Contains(log, "panic") {
		t.Errorf("it says:\n%s", log)
	}
}

// There is no proxy, so there is no traffic: that is an answer. The proxies that other tests
// have at the same time can't be read, which is told: either shows that the proxies are
// listed and that windows pass.
func TestTheCommandMeasuresByProxiesWithTheChartsRights(t *testing.T) {
	installTraffic(t)
	c := startCommand(t, "--certificate-secret="+metricsService, "--source=scrape", "--window=1s")
	c.join(t)
	serving(t)
	eventually(t, "a window is over", func() error {
		body, err := rawClient(t).Get().AbsPath(root + "/pods").MaxRetries(0).Do(t.Context()).Raw()
		switch {
		case apierrors.IsServiceUnavailable(err) && strings.Contains(string(body), "proxies could be read: proxy "):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %s", err, body)
		case !strings.Contains(string(body), `"items":[]`):
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	if err := c.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if log := c.log.String(); strings.Contains(log, "forbidden") || strings.Contains(log, "panic") {
		t.Errorf("it says:\n%s", log)
	}
}

func TestTheCommandReadsAProvidedCertificateAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		b, err := certificate.Make([]string{name}, time.Now(), certificate.Bundle{})
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{"tls.key": b.Key, "tls.crt": b.Certificate} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("first.example")
	c := startCommand(t, "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))
	write("second.example")
	eventually(t, "the second certificate is shown", func() error {
		response, err := c.ask(t, "/livez")
		if err != nil {
			return err
		}
		if names := response.TLS.PeerCertificates[0].DNSNames; names[0] != "second.example" {
			return fmt.Errorf("it shows %s", strconv.Quote(names[0]))
		}
		return nil
	})
	if err := c.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
