// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

const (
	// terminalPeriod and plainPeriod are how often the state is shown on a
	// terminal, where it is one line drawn again, and elsewhere, where it is a new line.
	terminalPeriod = time.Second
	plainPeriod    = 15 * time.Second
	// keptProblems is how many of the last lines that are no progress are kept to explain a failure.
	keptProblems = 40
)

// progress reads what the go command says while it works and shows how far it
// is. It is safe for concurrent use.
type progress struct {
	name     string
	out      io.Writer
	terminal bool
	clock    clock.WithTicker
	started  time.Time
	ended    chan struct{}
	stopped  sync.WaitGroup

	mu    sync.Mutex
	state state
	rest  []byte // the beginning of a line whose end has not arrived
	other []string
}

// state is what is known of a build.
type state struct {
	downloaded int // modules
	compiled   int // packages
	total      int // packages; 0 while it is not known
	compiling  bool
}

// String says the state in words.
func (s state) String() string {
	switch {
	case !s.compiling && s.downloaded > 0:
		return fmt.Sprintf("downloaded %d modules", s.downloaded)
	case !s.compiling:
		return "reading the modules"
	case s.compiled >= s.total:
		return fmt.Sprintf("linking, %d packages compiled", s.compiled)
	}
	return fmt.Sprintf("compiled %d of %d packages", s.compiled, s.total)
}

func newProgress(name string, out io.Writer, clk clock.WithTicker) *progress {
	file, isFile := out.(*os.File)
	p := &progress{
		name: name, out: out, clock: clk, started: clk.Now(),
		terminal: isFile && term.IsTerminal(int(file.Fd())),
		ended:    make(chan struct{}),
	}
	period := plainPeriod
	if p.terminal {
		period = terminalPeriod
	}
	ticker := clk.NewTicker(period)
	p.stopped.Go(func() { p.show(ticker) })
	return p
}

// show draws the state at every tick until the build has ended.
func (p *progress) show(ticker clock.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C():
			p.mu.Lock()
			now := p.state
			p.mu.Unlock()
			p.print(now.String(), p.terminal)
		}
	}
}

// print writes one line; a transient one is overwritten by the next.
func (p *progress) print(text string, transient bool) {
	line := fmt.Sprintf("%s: %s, %s", p.name, text, p.clock.Since(p.started).Round(time.Second))
	switch {
	case !p.terminal:
		fmt.Fprintln(p.out, line)
	case transient:
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	default:
		fmt.Fprintf(p.out, "\r\x1b[K%s\n", line)
	}
}

// compiling says that total packages are about to be compiled.
func (p *progress) compiling(total int) {
	p.mu.Lock()
	p.state.compiling, p.state.total = true, total
	p.mu.Unlock()
	p.print(fmt.Sprintf("building, %d packages to compile", total), false)
}

// done says that the build succeeded.
func (p *progress) done() { p.print("built", false) }

// stop ends the drawing.
func (p *progress) stop() {
	close(p.ended)
	p.stopped.Wait()
}

// Write takes what the go command prints.
func (p *progress) Write(chunk []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, chunk...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(chunk), nil
		}
		p.rest = rest
		p.take(string(line))
	}
}

// take counts one line of the go command. A line that is a lone import path is
// a package that is being compiled.
func (p *progress) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.state.downloaded++
	case p.state.compiling && line != "" && !strings.ContainsAny(line, " \t:"):
		p.state.compiled++
	default:
		p.other = append(p.other, line)
		p.other = p.other[max(0, len(p.other)-keptProblems):]
	}
}

// problems is what the go command said that was not progress.
func (p *progress) problems() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(append(p.other, string(p.rest)), "\n")
}
