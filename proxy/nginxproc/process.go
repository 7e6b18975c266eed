// SPDX-License-Identifier: Apache-2.0

package nginxproc

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
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const (
	confirmInterval = 5 * time.Millisecond
	statusTimeout   = 2 * time.Second
	// watchInterval is how often it is looked whether a master that is not a child has
	// ended.
	watchInterval = 50 * time.Millisecond
	// termTimeout is how long nginx may take to end when it is not to wait for requests.
	termTimeout = 5 * time.Second
	// maxStatusBody is far more than an answer has.
	maxStatusBody = 256
)

// errNotRunning is the error of asking something of an nginx that has ended.
var errNotRunning = errors.New("nginx is not running")

// Options are what Process needs.
type Options struct {
	// Binary is nginx's executable.
	Binary string
	// Dir that nginx and the agent share.
	Dir conf.Dir
	// Workers is the number of worker processes of every configuration.
	Workers int
	// Log takes nginx's error log.
	Log io.Writer
	// Killed is called with the number of workers that ended on their own.
	Killed func(workers int)
	// Files keeps the pipe of the error log open, so that nginx can go on to write to
	// it when the agent crashes.
	Files fdstore.Store
	// Clock paces the wait for a confirmation.
	Clock clock.WithTicker
}

// Launch is what an nginx is started with.
type Launch struct {
	// Folder holds its configuration and tables.
	Folder conf.Instance
	// Key that it answers when it runs the configuration.
	Key string
	// Sockets are the descriptors of all that it listens on for clients.
	Sockets []int
}

// Process is a real nginx, and the previous ones that still have requests.
type Process struct {
	Options
	log *errorLog
	// current is nil while there is none.
	current  *Master
	previous []*Master
	// stopped is closed when there is nothing to watch any more.
	stopped chan struct{}
}

// New makes a Process that is not started.
func New(opts Options) (*Process, error) {
	binary, err := exec.LookPath(opts.Binary)
	if err != nil {
		return nil, fmt.Errorf("find nginx: %w", err)
	}
	if opts.Binary, err = filepath.Abs(binary); err != nil {
		return nil, fmt.Errorf("find nginx: %w", err)
	}
	log, err := openErrorLog(opts.Files, &errorWriter{out: opts.Log, killed: opts.Killed})
	if err != nil {
		return nil, fmt.Errorf("error log of nginx: %w", err)
	}
	return &Process{Options: opts, log: log, stopped: make(chan struct{})}, nil
}

// Ended is closed when the newest master has ended; nil while there is none.
func (p *Process) Ended() <-chan struct{} {
	if p.current == nil {
		return nil
	}
	return p.current.ended
}

// Start starts an nginx and waits until all its workers serve the key.
func (p *Process) Start(ctx context.Context, launch Launch) error {
	p.log.writer.reset()
	m, err := spawn(p.Binary, launch, p.log.write)
	if err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	if err := p.confirm(ctx, m, launch.Key); err != nil {
		return errors.Join(err, kill(m))
	}
	if p.current != nil {
		p.countLost()
		p.previous = append(p.previous, p.current)
	}
	p.current = m
	return nil
}

// countLost counts the workers that ended with their master, which no other log has.
func (p *Process) countLost() {
	select {
	case <-p.current.ended:
	default:
		return
	}
	members, err := p.current.Members()
	if lost := p.Workers - Accepting(members); err == nil && lost > 0 && p.Killed != nil {
		p.Killed(lost)
	}
}

// Adopt continues with what another agent started.
func (p *Process) Adopt(ctx context.Context, launch Launch) error {
	numbers, err := Instances(p.Dir)
	if err != nil {
		return fmt.Errorf("adopt nginx: %w", err)
	}
	var current *Master
	for _, n := range numbers {
		m, err := FindMaster(p.Dir.Instance(n))
		if err != nil {
			return fmt.Errorf("adopt nginx: %w", err)
		}
		switch {
		case m == nil:
		case m.folder == launch.Folder:
			current = m
		default:
			p.previous = append(p.previous, m)
		}
	}
	if current == nil {
		return fmt.Errorf("adopt nginx: %w", errNotRunning)
	}
	p.current = current
	go p.watch(current)
	runs, err := current.runs()
	if err == nil && !runs {
		err = errNotRunning
	}
	if err == nil {
		err = p.confirm(ctx, current, launch.Key)
	}
	if err != nil {
		return fmt.Errorf("adopt nginx: %w", err)
	}
	return nil
}

// watch waits for the end of a master that is the child of another process.
func (p *Process) watch(m *Master) {
	ticker := p.Clock.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		if runs, err := m.runs(); err == nil && !runs {
			close(m.ended)
			return
		}
		select {
		case <-ticker.C():
		case <-p.stopped:
			return
		}
	}
}

// Retire has the previous ones finish, and waits until none of them accepts connections.
func (p *Process) Retire(ctx context.Context) error {
	for _, m := range p.previous {
		if err := m.quit(); err != nil {
			return err
		}
	}
	return p.await(ctx, func(members []Member) bool { return Accepting(members) == 0 }, p.previous)
}

// Stop lets every nginx finish its requests. When the context ends sooner, what is
// left is cut off. It returns when all have ended.
func (p *Process) Stop(ctx context.Context) error {
	all := p.previous
	if p.current != nil {
		all = append(all, p.current)
	}
	close(p.stopped)
	defer p.log.close()
	gone := func(members []Member) bool { return len(members) == 0 }
	for _, m := range all {
		if err := m.quit(); err != nil {
			return err
		}
	}
	if p.await(ctx, gone, all) == nil {
		return nil
	}
	cut := fmt.Errorf("requests were cut off: %w", ctx.Err())
	// From here on it is a matter of moments.
	rest := context.WithoutCancel(ctx)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, m := range all {
			if err := m.signalAll(signal); err != nil {
				return errors.Join(cut, err)
			}
		}
		last, cancel := context.WithTimeout(rest, termTimeout)
		err := p.await(last, gone, all)
		cancel()
		if err == nil {
			return cut
		}
	}
	return errors.Join(cut, errors.New("stop nginx: it can't be killed"))
}

// await waits until a condition holds for each of some nginx.
func (p *Process) await(ctx context.Context, condition func([]Member) bool, masters []*Master) error {
	ticker := p.Clock.NewTicker(confirmInterval)
	defer ticker.Stop()
	for {
		holds := true
		for _, m := range masters {
			members, err := m.Members()
			if err != nil {
				return err
			}
			holds = holds && condition(members)
		}
		if holds {
			return p.sweep()
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return fmt.Errorf("stop nginx: %w", ctx.Err())
		}
	}
}

// sweep forgets previous ones that have ended, and removes their folders.
func (p *Process) sweep() error {
	var left []*Master
	for _, m := range p.previous {
		members, err := m.Members()
		if err != nil {
			return err
		}
		if len(members) > 0 {
			left = append(left, m)
			continue
		}
		if err := os.RemoveAll(string(m.folder)); err != nil {
			return fmt.Errorf("remove what a previous nginx left: %w", err)
		}
	}
	p.previous = left
	return nil
}

// confirm waits until there are enough workers and one of them answers the key.
func (p *Process) confirm(ctx context.Context, m *Master, key string) error {
	ticker := p.Clock.NewTicker(confirmInterval)
	defer ticker.Stop()
	status := StatusClient(m.folder)
	for {
		members, err := m.Members()
		if err != nil {
			return err
		}
		if Accepting(members) >= p.Workers && Ask(ctx, status, "/key") == key {
			return nil
		}
		select {
		case <-ticker.C():
		case <-m.ended:
			p.log.drain()
			return p.log.writer.explain(errNotRunning)
		case <-ctx.Done():
			return p.log.writer.explain(fmt.Errorf("nginx does not serve the configuration: %w", ctx.Err()))
		}
	}
}

// StatusClient asks the status server of an nginx. Each request has a connection of
// its own, so that a worker that has stopped accepting is never the one that answers.
func StatusClient(folder conf.Instance) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", folder.StatusSocket())
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: statusTimeout}
}

// Ask asks a worker for a path of its status server; "" when it does not answer.
func Ask(ctx context.Context, status *http.Client, path string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nginx"+path, http.NoBody)
	if err != nil {
		return ""
	}
	response, err := status.Do(request)
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
