// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

const (
	confirmInterval = 5 * time.Millisecond
	statusTimeout   = 2 * time.Second
	// maxStatusBody is far more than a key has.
	maxStatusBody = 256
)

// errNotRunning is the error of asking something of an nginx that has ended.
var errNotRunning = errors.New("nginx is not running")

// ProcessOptions are what Process needs.
type ProcessOptions struct {
	// Binary is nginx's executable.
	Binary string
	// Dir that nginx and the agent share.
	Dir nginx.Dir
	// Workers is the number of worker processes of every configuration.
	Workers int
	// Log takes nginx's error log.
	Log io.Writer
	// Clock paces the wait for a confirmation.
	Clock clock.WithTicker
}

// Process is a real nginx: a master process that is a child of this one.
type Process struct {
	ProcessOptions
	status  *http.Client
	log     *emergencies
	command *exec.Cmd
	// ended is closed when the master has ended; nil while there is none.
	ended chan struct{}
	err   error // of the master's end; set before ended is closed
}

// NewProcess makes a Process that is not started.
func NewProcess(opts ProcessOptions) *Process {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", opts.Dir.StatusSocket())
	}
	return &Process{
		ProcessOptions: opts,
		// Each request on a connection of its own, so that a worker that has stopped
		// accepting is never the one that answers.
		status: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: statusTimeout},
		log:    &emergencies{out: opts.Log},
	}
}

// Test has nginx check a configuration file. The error holds what nginx says.
func (p *Process) Test(ctx context.Context, file string) error {
	out, err := exec.CommandContext(ctx, p.Binary, "-t", "-q", "-c", file).CombinedOutput()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return fmt.Errorf("nginx refuses the configuration: %s", text)
	}
	return fmt.Errorf("nginx refuses the configuration: %w", err)
}

// Start starts nginx with the configuration at Dir.Config and waits until all its
// workers serve the key.
func (p *Process) Start(ctx context.Context, key string) error {
	if err := p.removeSockets(); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	command := exec.Command(p.Binary, "-c", p.Dir.Config()) //nolint:noctx // nginx outlives the context and is stopped gracefully
	command.Stdout, command.Stderr = p.log, p.log
	// A group of its own, so that Ctrl-C in a terminal reaches the agent only.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	ended := make(chan struct{})
	p.command, p.ended = command, ended
	go func() {
		p.err = command.Wait()
		close(ended)
	}()
	err := p.confirm(ctx, nil, key)
	if err != nil {
		p.kill()
	}
	return err
}

// removeSockets removes what an nginx that was killed left behind, where another
// could not listen.
func (p *Process) removeSockets() error {
	sockets, err := filepath.Glob(filepath.Join(string(p.Dir), "*.sock"))
	if err != nil {
		return err
	}
	for _, socket := range sockets {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// kill ends a master that never served, with its workers, so that another can be
// started.
func (p *Process) kill() {
	// The group may be gone already; that it is gone is all that matters.
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.ended
	p.command, p.ended = nil, nil
}

// Ended is closed when a master that served has ended; nil while there is none.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Reload makes nginx take over the configuration at Dir.Config and waits until
// every worker that accepts connections serves the key.
func (p *Process) Reload(ctx context.Context, key string) error {
	former, err := acceptingWorkers(procDir, p.command.Process.Pid)
	if err != nil {
		return err
	}
	p.log.reset()
	if err := p.command.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reload nginx: %w", err)
	}
	return p.confirm(ctx, former, key)
}

// Stop lets nginx finish its requests. When the context ends sooner, what is left
// is cut off. It returns when nginx has ended.
func (p *Process) Stop(ctx context.Context) error {
	if p.command == nil {
		return nil
	}
	for _, signal := range []os.Signal{syscall.SIGQUIT, syscall.SIGTERM} {
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop nginx: %w", err)
		}
		select {
		case <-p.ended:
			if p.err != nil {
				return fmt.Errorf("stop nginx: %w", p.err)
			}
			return nil
		case <-ctx.Done():
		}
	}
	// SIGTERM makes the master end its workers within a second, then by force.
	<-p.ended
	return fmt.Errorf("requests were cut off: %w", ctx.Err())
}

// confirm waits until every accepting worker is new and one of them answers the key.
func (p *Process) confirm(ctx context.Context, former map[int]bool, key string) error {
	ticker := p.Clock.NewTicker(confirmInterval)
	defer ticker.Stop()
	for {
		workers, err := acceptingWorkers(procDir, p.command.Process.Pid)
		if err != nil {
			return err
		}
		if replaced(former, workers, p.Workers) && p.key(ctx) == key {
			return nil
		}
		select {
		case <-ticker.C():
		case <-p.ended:
			return p.log.explain(errNotRunning)
		case <-ctx.Done():
			return p.log.explain(fmt.Errorf("nginx did not take over the configuration: %w", ctx.Err()))
		}
	}
}

// key asks a worker which configuration it runs; "" when it does not answer.
func (p *Process) key(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nginx/key", http.NoBody)
	if err != nil {
		return ""
	}
	response, err := p.status.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatusBody))
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(bytes.TrimSpace(body))
}
