// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// place is what the template of a configuration is filled with.
type place struct {
	// Port to listen on, and those of the two backends.
	Port, Stable, Canary int
	// Dir is a folder in memory for files of this nginx alone.
	Dir     string
	Workers int
}

// startOthers starts the configurations that -also names. stop ends those that were started.
func (s settings) startOthers(ctx context.Context, dir string, backends *server) (others []*contender, stop func(), err error) {
	var servers []*server
	stop = func() {
		for _, o := range servers {
			o.stop()
		}
	}
	for _, file := range s.also {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		started, err := startTemplate(ctx, filepath.Join(dir, "also", name), file, s.workers, backends)
		if err != nil {
			return nil, stop, fmt.Errorf("-also %s: %w", file, err)
		}
		servers = append(servers, started)
		others = append(others, &contender{name: name, port: started.ports[0], pids: started.processes})
	}
	return others, stop, nil
}

// startTemplate starts nginx with a configuration that a file is the template of.
func startTemplate(ctx context.Context, dir, file string, workers int, backends *server) (*server, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := fill(file, place{Port: ports[0], Stable: backends.ports[0], Canary: backends.ports[1], Dir: dir, Workers: workers})
	if err != nil {
		return nil, err
	}
	return launch(ctx, dir, "nginx", text, ports...)
}

// fill is the configuration that a template makes for a place.
func fill(file string, in place) (string, error) {
	parsed, err := template.ParseFiles(file)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, in); err != nil {
		return "", err
	}
	return text.String(), nil
}
