// SPDX-License-Identifier: Apache-2.0

package boxgraph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/boxgraph"
	"github.com/serin-dev/serin/config/golden"
)

func TestText(t *testing.T) {
	tests := []struct {
		name   string
		labels []string
		edges  []boxgraph.Edge
	}{
		{"the example of the text", []string{"traffic", "foo", "bar", "baz"}, []boxgraph.Edge{{0, 1}, {0, 2}, {1, 2}, {2, 3}, {3, 2}}},
		{"no edges", []string{"one", "two"}, nil},
		{"a circle", []string{"one", "two", "three"}, []boxgraph.Edge{{0, 1}, {1, 2}, {2, 0}}},
		{"one that calls itself", []string{"one", "two"}, []boxgraph.Edge{{0, 0}, {0, 1}}},
		{"lines that cross", []string{"shop", "admin", "prices", "users"}, []boxgraph.Edge{{0, 2}, {0, 3}, {1, 2}, {1, 3}}},
		{"nothing", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := boxgraph.Text(test.labels, test.edges)
			file := filepath.Join("testdata", strings.ReplaceAll(test.name, " ", "-")+".txt")
			golden.Check(t, file, got)
		})
	}
}

// The lines lead along every edge, and no other.
func TestADrawingSaysWhatTheGraphSays(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(8)
		var labels []string
		for i := range n {
			labels = append(labels, fmt.Sprintf("n%d%s", i, strings.Repeat("x", r.IntN(5))))
		}
		want := map[string]bool{}
		var edges []boxgraph.Edge
		for range r.IntN(2 * n) {
			e := boxgraph.Edge{From: r.IntN(n), To: r.IntN(n)}
			if name := labels[e.From] + " → " + labels[e.To]; !want[name] {
				want[name] = true
				edges = append(edges, e)
			}
		}
		text := boxgraph.Text(labels, edges)
		got := read(text)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Fatalf("seed %d: (-graph +drawing)\n%s\n%s", seed, diff, text)
		}
	}
}

// reader follows the lines of a drawing.
type reader struct {
	rows  [][]rune
	found map[string]bool
}

func read(text string) map[string]bool {
	r := &reader{found: map[string]bool{}}
	for line := range strings.Lines(text) {
		r.rows = append(r.rows, []rune(strings.TrimSuffix(line, "\n")))
	}
	for y, row := range r.rows {
		for x := range row {
			label, right, isBox := r.box(x, y)
			if !isBox {
				continue
			}
			if name, itself := strings.CutSuffix(label, " ↻"); itself {
				label = name
				r.found[label+" → "+label] = true
			}
			if r.at(right+1, y) == '◀' {
				target := r.end(right+1, y)
				r.found[target+" → "+label] = true
			}
			r.follow(label, right+1, y, 1, 0)
		}
	}
	return r.found
}

func (r *reader) at(x, y int) rune {
	if y < 0 || y >= len(r.rows) || x < 0 || x >= len(r.rows[y]) {
		return ' '
	}
	return r.rows[y][x]
}

// box reads the label of the box whose left side is at a place.
func (r *reader) box(x, y int) (label string, right int, is bool) {
	if r.at(x, y) != '│' || r.at(x, y-1) != '┌' || !strings.ContainsRune("│└", r.at(x, y+1)) || r.at(x+1, y) != ' ' {
		return "", 0, false
	}
	right = x + 1
	for r.at(right, y-1) == '─' {
		right++
	}
	if r.at(right, y-1) != '┐' || r.at(right, y) != '│' {
		return "", 0, false
	}
	return strings.TrimSpace(string(r.rows[y][x+1 : right])), right, true
}

// end follows the one line of a place to the label at its end.
func (r *reader) end(x, y int) string {
	one := &reader{rows: r.rows, found: map[string]bool{}}
	one.follow("", x, y, 1, 0)
	for name := range one.found {
		return strings.TrimPrefix(name, " → ")
	}
	return "?"
}

// follow goes on in a direction, and never to the left.
func (r *reader) follow(from string, x, y, dx, dy int) {
	switch c := r.at(x, y); {
	case c == '▶':
		r.arrive(from, x+1, y)
	case c == '◀' || c == '┼' || c == '─' && dx == 1 || c == '│' && dy != 0:
		r.follow(from, x+dx, y+dy, dx, dy)
	case dx == 1:
		if strings.ContainsRune("┬┴", c) {
			r.follow(from, x+1, y, 1, 0)
		}
		if strings.ContainsRune("┬┐", c) {
			r.follow(from, x, y+1, 0, 1)
		}
		if strings.ContainsRune("┴┘", c) {
			r.follow(from, x, y-1, 0, -1)
		}
	case dy == 1 && strings.ContainsRune("└┴", c), dy == -1 && strings.ContainsRune("┌┬", c):
		r.follow(from, x+1, y, 1, 0)
	}
}

func (r *reader) arrive(from string, x, y int) {
	if name, found := strings.CutPrefix(string(r.rows[y][x:]), " ↩ "); found {
		r.found[from+" → "+strings.TrimSuffix(strings.Fields(name)[0], " ↻")] = true
		return
	}
	for r.at(x, y) == ' ' {
		x++
	}
	for y > 0 && r.at(x, y-1) != '┌' {
		y-- // to the row of the label
	}
	label, _, _ := r.box(x, y)
	r.found[from+" → "+strings.TrimSuffix(label, " ↻")] = true
}
