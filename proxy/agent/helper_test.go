// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// crewVariable makes this test binary a supervisor, or the agent of one, instead of
// running tests. Its value is a crewConfig.
const crewVariable = "SERIN_TEST_CREW"

// crewConfig is what a supervisor and its agents are told.
type crewConfig struct {
	Render conf.Options
	Binary string
	Status string
	// Wants is a file with the Want, and Reports one to which the reports are added.
	Wants, Reports string
}

// atOnce is how many tests run at the same time unless -parallel says otherwise: most of
// the time they wait until nginx has forgotten what it looked up.
const atOnce = "4"

func TestMain(m *testing.M) {
	text := os.Getenv(crewVariable)
	if text == "" {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	var c crewConfig
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err = c.run(ctx)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is what serin proxy does, with a feed of files instead of an API.
func (c crewConfig) run(ctx context.Context) error {
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
	if !fdstore.Supervised() {
		s := fdstore.Supervisor{Executable: os.Args[0], Args: os.Args[1:], Clock: clock.RealClock{}, Log: log.WithName("supervisor")}
		return s.Run(ctx)
	}
	files, err := fdstore.FromSupervisor()
	if err != nil {
		return err
	}
	listener, err := StatusListener(ctx, files, c.Status)
	if err != nil {
		return err
	}
	feed := newFileFeed(c)
	return New(Options{
		Render: c.Render, Files: files, Feed: feed, Served: feed.Report, Listener: listener,
		Server: func(killed func(int)) (Server, error) {
			return nginxproc.New(nginxproc.Options{
				Binary: c.Binary, Dir: c.Render.Dir, Workers: c.Render.Workers, Log: os.Stderr, Killed: killed, Files: files, Clock: clock.RealClock{},
			})
		},
		Drain: 500 * time.Millisecond, QuitTimeout: 20 * time.Second, ApplyTimeout: 20 * time.Second, Settle: time.Second,
		Clock: clock.RealClock{}, Log: log.WithName("agent"),
	}).Run(ctx)
}

// fileFeed is a Feed by two files.
type fileFeed struct {
	crewConfig
	wants chan feed.Want
}

func newFileFeed(c crewConfig) *fileFeed {
	return &fileFeed{crewConfig: c, wants: make(chan feed.Want)}
}

func (f *fileFeed) Wants() <-chan feed.Want { return f.wants }

// Run delivers what the file holds whenever that changes.
func (f *fileFeed) Run(ctx context.Context) error {
	previous := ""
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		data, err := os.ReadFile(f.crewConfig.Wants)
		if errors.Is(err, os.ErrNotExist) || string(data) == previous {
			continue
		}
		var want feed.Want
		if err == nil {
			err = json.Unmarshal(data, &want)
		}
		if err != nil {
			return err
		}
		previous = string(data)
		select {
		case f.wants <- want:
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *fileFeed) Report(s confirmation.Served) {
	file, err := os.OpenFile(f.Reports, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d %s\n", s.Generation, s.Message)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		panic(err)
	}
}

// lastReport is what was reported last.
func (c crewConfig) lastReport(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(c.Reports)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	return lines[len(lines)-1]
}

// writeWant asks for something.
func (c crewConfig) writeWant(t *testing.T, want feed.Want) {
	t.Helper()
	data, err := json.Marshal(want)
	if err == nil {
		err = replace.File(c.Wants, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c crewConfig) masters(t *testing.T) []*nginxproc.Master {
	t.Helper()
	numbers, err := nginxproc.Instances(c.Render.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var masters []*nginxproc.Master
	for _, n := range numbers {
		m, err := nginxproc.FindMaster(c.Render.Dir.Instance(n))
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			masters = append(masters, m)
		}
	}
	return masters
}

// children are the processes whose parent is pid.
func children(t *testing.T, pid int) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, path := range folders {
		data, err := readProc(path)
		if err != nil {
			t.Fatal(err)
		}
		var child, parent int
		var name, state string
		if n, err := fmt.Sscanf(string(data), "%d %s %s %d", &child, &name, &state, &parent); n == 4 && err == nil && parent == pid && state != "Z" {
			out = append(out, child)
		}
	}
	return out
}

// readProc reads a file of a process; one that is gone reads as empty.
func readProc(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	return data, err
}
