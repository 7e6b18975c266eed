// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// engine stands in for the command docker, which is all that kind knows of a container engine. It has the one node of
// a cluster that was created without a name, and runs here what kind runs in that node.
const engine = `#!/bin/sh
set -eu
command=$1
shift
case "$command $*" in
"-v "*) echo "Docker version 28.0.0" ;;
"ps "*label=io.x-k8s.kind.cluster=kind*) echo kind-control-plane ;;
"ps "*) ;;
"inspect "*io.x-k8s.kind.role*) echo control-plane ;;
"inspect "*NetworkSettings.Ports*) printf '127.0.0.1\t%s\n' "$API_PORT" ;;
"inspect "*) echo ;;
"exec "*)
	while [ "$1" != kind-control-plane ]; do shift; done
	shift
	case "$*" in
	"cat /etc/kubernetes/admin.conf") cat "$ADMIN_CONF" ;;
	"containerd config dump") printf 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"\n' ;;
	"ctr "*) shift && exec ctr --address "$CONTAINERD" "$@" ;;
	*) echo "the stand-in for a node does not run: $*" >&2 && exit 1 ;;
	esac ;;
*) echo "the stand-in for an engine has no: $command $*" >&2 && exit 1 ;;
esac
`

// TestAClusterOfKindIsReachedByItsContextAndTakesTheImages: what kind itself does for the commands of README.md and
// the quickstart is done by kind. Only what makes its node from an image needs a container engine.
func TestAClusterOfKindIsReachedByItsContextAndTakesTheImages(t *testing.T) {
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := checkout.Builder(os.Stderr).Build(t.Context(), tools.Kind)
	if err != nil {
		t.Fatal(err)
	}
	existing, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := existing.Stop(); err != nil {
			t.Error(err)
		}
	})
	home, bin, socket := t.TempDir(), t.TempDir(), startContainerd(t)
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(engine), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"KIND_EXPERIMENTAL_PROVIDER": "docker", "CONTAINERD": socket,
		"ADMIN_CONF": existing.Kubeconfig, "API_PORT": portOf(t, existing.Kubeconfig),
		"PATH": strings.Join([]string{bin, programs.Folder("kind"), os.Getenv("PATH")}, ":"),
	} {
		t.Setenv(name, value)
	}

	// As kind create cluster does when the node runs.
	export := exec.CommandContext(t.Context(), "kind", "export", "kubeconfig")
	export.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG=")
	if out, err := export.CombinedOutput(); err != nil {
		t.Fatalf("kind: %v\n%s", err, out)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{
		Kubeconfig: filepath.Join(home, ".kube", "config"), Context: "kind-kind", Out: testWriter{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	builder := images.NewBuilder(checkout, io.Discard)
	builder.Cache = t.TempDir()
	archives, err := builder.Build(t.Context(), images.Pause)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ImportImages(t.Context(), archives...); err != nil {
		t.Fatal(err)
	}
	list, err := exec.CommandContext(t.Context(), "ctr", "--address", socket, "--namespace", "k8s.io", "images", "list").CombinedOutput()
	if want := archives[0].Reference + " "; err != nil || !strings.Contains(string(list), want) || !strings.Contains(string(list), archives[0].Digest) {
		t.Errorf("the node has not the image %s with the digest %s: %v\n%s", want, archives[0].Digest, err, list)
	}
}

// startContainerd runs a containerd for images alone, and returns its socket.
func startContainerd(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "containerd needs root", "run the test as root")
	}
	if _, err := exec.LookPath("containerd"); err != nil {
		testenv.Missing(t, err.Error(), "on Debian: apt-get install containerd")
	}
	folder := shortDir(t)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	socket, config := filepath.Join(folder, "containerd.sock"), filepath.Join(folder, "config.toml")
	text := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n",
		filepath.Join(folder, "root"), filepath.Join(folder, "state"), socket)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	daemon := exec.Command("containerd", "--config", config)
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait() // it was told to end
		if t.Failed() {
			t.Log(log.String())
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return exec.CommandContext(ctx, "ctr", "--address", socket, "--connect-timeout", "1s", "version").Run() == nil, nil
	})
	if err != nil {
		t.Fatalf("containerd does not answer: %v", err)
	}
	return socket
}

// portOf is where the API server of a kubeconfig file listens.
func portOf(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return server.Port()
}
