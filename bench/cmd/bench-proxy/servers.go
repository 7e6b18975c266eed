// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/agent"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/fdstore"
	proxyfeed "github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// startTimeout is how long a server may take to start.
const startTimeout = 10 * time.Second

// server is an nginx of this benchmark's own.
type server struct {
	command *exec.Cmd
	ports   []int
}

// startServer starts nginx with a text of its configuration's http block and waits
// until it listens.
func startServer(ctx context.Context, dir, name string, workers int, http string, ports ...int) (*server, error) {
	return launch(ctx, dir, name, fmt.Sprintf(`daemon off;
pid %s;
error_log stderr crit;
worker_processes %d;
events { worker_connections 10240; }
http {
    access_log off;
    keepalive_requests 100000;
%s}
`, filepath.Join(dir, name+".pid"), workers, http), ports...)
}

// launch starts nginx with a whole configuration and waits until it listens.
func launch(ctx context.Context, dir, name, text string, ports ...int) (*server, error) {
	file := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &server{command: exec.Command("nginx", "-c", file), ports: ports} //nolint:noctx // it is told to end
	s.command.Stderr = os.Stderr
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, port := range ports {
		if err := awaitPort(ctx, port); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

func awaitPort(ctx context.Context, port int) error {
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *server) stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = s.command.Wait()                          // by the signal
}

// startBackends starts two backends that answer at once with their names.
func startBackends(ctx context.Context, dir string, workers int) (*server, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	var http strings.Builder
	for i, port := range ports {
		fmt.Fprintf(&http, "    server { listen 127.0.0.1:%d; location / { return 200 %s; } }\n", port, backendNames[i])
	}
	return startServer(ctx, dir, "backends", workers, http.String(), ports...)
}

var backendNames = []string{"stable", "canary"}

// keptConnections are as Serin keeps them.
const keptConnections = `
        keepalive 512;
        keepalive_timeout 1s;
        keepalive_time 5s;
        keepalive_requests 10000;
    }
`

// startPlain starts what one would write without Serin: the same backends, kept
// connections, and no log. The weights are those of an upstream's servers, which come round
// in turns, or split_clients draws one of two upstreams for each request, as Serin does.
func startPlain(ctx context.Context, dir, name string, workers int, backends *server, drawn bool) (*server, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	stable, canary := backends.ports[0], backends.ports[1]
	choice := fmt.Sprintf("    upstream app {\n        server 127.0.0.1:%d weight=9 max_fails=0;\n        server 127.0.0.1:%d weight=1 max_fails=0;"+keptConnections, stable, canary)
	pass := "app"
	if drawn {
		choice = fmt.Sprintf("    upstream stable {\n        server 127.0.0.1:%d max_fails=0;"+keptConnections+
			"    upstream canary {\n        server 127.0.0.1:%d max_fails=0;"+keptConnections+
			"    split_clients \"$connection $connection_requests\" $version {\n        90%% stable;\n        * canary;\n    }\n", stable, canary)
		pass = "$version"
	}
	return startServer(ctx, dir, name, workers, choice+fmt.Sprintf(`    server {
        listen %d backlog=4096;
        location / {
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_pass http://%s;
        }
    }
`, ports[0], pass), ports...)
}

// freePorts finds ports that no process listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "0.0.0.0:0") //nolint:noctx,gosec // closed at once
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // held until all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// feed is a proxy.Feed without an API.
type feed struct {
	wants   chan proxyfeed.Want
	reports chan confirmation.Served
}

func (f *feed) Run(ctx context.Context) error { <-ctx.Done(); return nil } //nolint:unparam // as the interface has it
func (f *feed) Wants() <-chan proxyfeed.Want  { return f.wants }
func (f *feed) Report(s confirmation.Served)  { f.reports <- s }

// serin is an agent within this process, with its nginx.
type serin struct {
	feed
	dir        conf.Dir
	port       int
	generation int64
	cancel     context.CancelFunc
	done       chan error
}

func startSerin(ctx context.Context, dir string, workers int) (*serin, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	render := conf.Options{Dir: conf.Dir(dir), Workers: workers, Connections: 10240, Memory: 512 << 20}
	if os.Geteuid() == 0 {
		render.User = "root"
	}
	s := &serin{
		feed: feed{make(chan proxyfeed.Want, 1), make(chan confirmation.Served, 1)},
		dir:  render.Dir, port: ports[0], done: make(chan error, 1),
	}
	ctx, s.cancel = context.WithCancel(ctx)
	a := agent.New(agent.Options{
		Render: render, Feed: s, Served: s.Report, Listener: listener,
		Server: func(killed func(int)) (agent.Server, error) {
			return nginxproc.New(nginxproc.Options{
				Binary: "nginx", Dir: render.Dir, Workers: workers, Log: os.Stderr, Killed: killed, Files: fdstore.None{}, Clock: clock.RealClock{},
			})
		},
		QuitTimeout: startTimeout, ApplyTimeout: startTimeout, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	go func() { s.done <- a.Run(ctx) }()
	return s, nil
}

// ask asks for weights of the two backends.
func (s *serin) ask(backends *server, weights [2]int32) {
	s.generation++
	port := traffic.Port{Number: 80, TargetNumber: int32(s.port), Protocol: traffic.ProtocolHTTP} //nolint:gosec // a port
	for i, weight := range weights {
		port.Destinations = append(port.Destinations, traffic.Destination{
			Service: backendNames[i], Address: "127.0.0.1", Port: int32(backends.ports[i]), Weight: weight, //nolint:gosec // a port
		})
	}
	s.wants <- proxyfeed.Want{Split: traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: "bench", Name: "web"}, Root: "web", Generation: s.generation, Ports: []traffic.Port{port},
	}}
}

// confirmed waits until the proxy says that the weights are live.
func (s *serin) confirmed(ctx context.Context) error {
	select {
	case served := <-s.reports:
		if served.Generation != s.generation {
			return fmt.Errorf("generation %d is live instead of %d: %s", served.Generation, s.generation, served.Message)
		}
		return nil
	case err := <-s.done:
		return fmt.Errorf("the agent ended: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *serin) stop() {
	s.cancel()
	if err := <-s.done; err != nil {
		fmt.Fprintln(os.Stderr, "bench-proxy: a proxy ended with", err)
	}
}
