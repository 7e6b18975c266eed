// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// Tables keeps the weights of the HTTP listeners of one nginx where it looks them
// up: whole parts by the folders that there are, single buckets in the modes of files.
//
//	all/00 … 99, none/00 … 99                files that are executable, or not
//	weights-<n>/<listener>-<id>/00 … 99      each a link to all or none, or
//	weights-<n>/<listener>-<id>/<high>/00 … 99   a folder of such files
//	weights-<n>/<listener>-<id>/any              a link to a file of all or none
//	weights-<n>/<listener>-<id>-<part>           a link to empty, there when the whole part is
//	empty                                    an empty folder
//	first, second                            links to the present generation
//
// A generation is written whole before the links to it are replaced by rename(2),
// so every request that is looked up after that is served by it; of whole parts nginx
// remembers until nginx.LookupsForgotten what it has found. Earlier ones
// stay for a while: a request may be held up between two look-ups. No look-up of a single bucket
// fails: the system would have to find out each time anew that there is no file.
type Tables struct {
	folder conf.Instance
	// written counts generations, so that no name is used twice.
	written int
	// generations that are on disk, oldest first.
	generations []string
	// closing is whether clients are asked to close their connections.
	closing bool
}

const (
	// keptGenerations of a table. One takes a few hundred links.
	keptGenerations = 16
	// hundred entries on each of the two levels make nginx.Buckets.
	hundred = 100
	// buckets of one part.
	buckets = conf.Buckets / conf.Parts

	everything, nothing, empty = "all", "none", "empty"
	generationPrefix           = "weights-"

	modeYes, modeNo fs.FileMode = 0o700, 0o600
)

// New makes the folders that stay from table to table.
func New(folder conf.Instance) (*Tables, error) {
	t := &Tables{folder: folder}
	if err := os.MkdirAll(t.path(empty), 0o700); err != nil {
		return nil, fmt.Errorf("table of weights: %w", err)
	}
	for name, buckets := range map[string]int{everything: hundred, nothing: 0} {
		if err := writeEntries(t.path(name), 0, buckets); err != nil {
			return nil, fmt.Errorf("table of weights: %w", err)
		}
	}
	return t, nil
}

// Open finds the tables that another agent wrote. That one may have asked
// clients to close their connections; with the next weights they are not asked any more.
func Open(folder conf.Instance) (*Tables, error) {
	entries, err := os.ReadDir(string(folder))
	if err != nil {
		return nil, fmt.Errorf("table of weights: %w", err)
	}
	t := &Tables{folder: folder}
	var numbers []int
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), generationPrefix))
		if err == nil && e.Name() == generationPrefix+strconv.Itoa(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		t.written = n
		t.generations = append(t.generations, generationPrefix+strconv.Itoa(n))
	}
	return t, nil
}

func (t *Tables) path(names ...string) string {
	return filepath.Join(append([]string{string(t.folder)}, names...)...)
}

// Write has nginx find new weights.
func (t *Tables) Write(table conf.Table) error {
	t.written++
	name := generationPrefix + strconv.Itoa(t.written)
	if err := os.Mkdir(t.path(name), 0o700); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	for _, l := range table {
		begin := 0
		for _, r := range l.Ranges {
			if err := t.writeBackend(t.path(name, conf.Folder(l.Listener, r.Target)), begin, begin+r.Buckets); err != nil {
				return fmt.Errorf("table of weights: %w", err)
			}
			begin += r.Buckets
		}
	}
	t.generations = append(t.generations, name)
	if err := t.point(name); err != nil {
		return err
	}
	for ; len(t.generations) > keptGenerations; t.generations = t.generations[1:] {
		if err := os.RemoveAll(t.path(t.generations[0])); err != nil {
			return fmt.Errorf("remove an earlier table: %w", err)
		}
	}
	return nil
}

// point has nginx look requests up in a generation. The second look-up comes
// first: a request that finds nothing in an earlier table must find something there.
func (t *Tables) point(generation string) error {
	if err := replace.Link(generation, t.folder.Second()); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	first := generation
	if t.closing {
		first = empty
	}
	if err := replace.Link(first, t.folder.First()); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	return nil
}

// AskToClose makes every answer from now on end its connection.
func (t *Tables) AskToClose() error {
	t.closing = true
	if err := replace.Link(empty, t.folder.First()); err != nil {
		return fmt.Errorf("ask clients to close: %w", err)
	}
	return nil
}

// writeBackend writes which buckets a backend has: those from begin up to end.
func (t *Tables) writeBackend(folder string, begin, end int) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	weight := nothing
	if end > begin {
		weight = everything
	}
	if err := os.Symlink(filepath.Join("..", "..", weight, twoDigits(0)), filepath.Join(folder, conf.AnyBucket)); err != nil {
		return err
	}
	for high := range hundred {
		// What this hundred has of the buckets, counted from its own beginning.
		from, to := max(begin-high*hundred, 0), min(end-high*hundred, hundred)
		if err := writeHundred(filepath.Join(folder, twoDigits(high)), from, to); err != nil {
			return err
		}
	}
	for part := range conf.Parts {
		if begin > part*buckets || end < (part+1)*buckets {
			continue
		}
		if err := os.Symlink(filepath.Join("..", empty), folder+"-"+twoDigits(part)); err != nil {
			return err
		}
	}
	return nil
}

// writeHundred writes which buckets of a hundred a backend has.
func writeHundred(path string, from, to int) error {
	switch {
	case to <= from:
		return os.Symlink(filepath.Join("..", "..", nothing), path)
	case to-from == hundred:
		return os.Symlink(filepath.Join("..", "..", everything), path)
	default:
		return writeEntries(path, from, to)
	}
}

// writeEntries writes a folder of hundred files, of which those from begin up to
// end are executable. All are links to two of them: a file of its own takes memory.
func writeEntries(folder string, begin, end int) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	first := map[fs.FileMode]string{}
	for low := range hundred {
		mode := modeNo
		if low >= begin && low < end {
			mode = modeYes
		}
		path := filepath.Join(folder, twoDigits(low))
		if other := first[mode]; other != "" {
			if err := os.Link(other, path); err != nil {
				return err
			}
			continue
		}
		first[mode] = path
		if err := os.WriteFile(path, nil, mode); err != nil {
			return err
		}
	}
	return nil
}

func twoDigits(n int) string { return fmt.Sprintf("%02d", n) }
