// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

// tables keeps the weights of HTTP listeners where nginx looks them up for each
// request: a tree of links.
//
//	targets/<id>                         an empty folder for each backend
//	full/<id>/00 … 99                    links to targets/<id>
//	tables/<key>/current                 a link to the generation in effect
//	tables/<key>/<n>/<listener>/00 … 99  each a link to full/<id>, or
//	tables/<key>/<n>/<listener>/<high>/00 … 99   a folder of links to targets/<id>
//
// A generation is written whole before the one link that leads to it is
// replaced by rename(2). So each request sees one generation or the next, and
// every request that looks after the rename sees the next. The former ones stay
// for a while: nginx takes several steps to follow the links, and may be held up
// between two of them.
type tables struct {
	dir nginx.Dir
	// written counts generations, so that no name is used twice.
	written int
	// generations that are on disk, oldest first, by key of the configuration.
	generations map[string][]string
}

// keptGenerations of a table. One takes a few hundred links.
const keptGenerations = 16

// hundred entries on each of the two levels make nginx.Buckets.
const hundred = 100

func newTables(dir nginx.Dir) *tables {
	return &tables{dir: dir, generations: map[string][]string{}}
}

// write puts the weights of a rendering in effect for the configuration with its key.
func (t *tables) write(r nginx.Rendering) error {
	t.written++
	name := strconv.Itoa(t.written)
	generation := filepath.Join(t.dir.Tables(r.Key), name)
	if err := os.MkdirAll(generation, 0o700); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	for _, l := range r.Table {
		if err := t.writeListener(filepath.Join(generation, strconv.Itoa(l.Listener)), l.Ranges); err != nil {
			return fmt.Errorf("table of weights: %w", err)
		}
	}
	next := generation + ".next"
	if err := os.Symlink(name, next); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	if err := os.Rename(next, t.dir.Current(r.Key)); err != nil {
		return fmt.Errorf("table of weights: %w", err)
	}
	kept := t.generations[r.Key]
	kept = append(kept, name)
	for ; len(kept) > keptGenerations; kept = kept[1:] {
		if err := os.RemoveAll(filepath.Join(t.dir.Tables(r.Key), kept[0])); err != nil {
			return fmt.Errorf("remove a former table: %w", err)
		}
	}
	t.generations[r.Key] = kept
	return nil
}

// keepOnly removes the tables of all configurations but these.
func (t *tables) keepOnly(keys ...string) error {
	for key := range t.generations {
		if !slices.Contains(keys, key) {
			delete(t.generations, key)
		}
	}
	return removeAllBut(filepath.Dir(t.dir.Tables("any")), keys...)
}

// writeListener writes the table of one listener into a new folder.
func (t *tables) writeListener(folder string, ranges []nginx.Range) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for _, r := range ranges {
		if err := t.ensureTarget(r.Target); err != nil {
			return err
		}
	}
	buckets := make([]string, 0, nginx.Buckets)
	for _, r := range ranges {
		buckets = append(buckets, slices.Repeat([]string{r.Target}, r.Buckets)...)
	}
	high := 0
	for entries := range slices.Chunk(buckets, hundred) {
		entry := filepath.Join(folder, twoDigits(high))
		high++
		if len(slices.Compact(slices.Clone(entries))) == 1 {
			if err := link(t.full(entries[0]), entry); err != nil {
				return err
			}
			continue
		}
		if err := t.writeEntries(entry, entries); err != nil {
			return err
		}
	}
	return nil
}

// ensureTarget makes the folders of a backend that stay from table to table.
func (t *tables) ensureTarget(id string) error {
	if err := os.MkdirAll(t.dir.Target(id), 0o700); err != nil {
		return err
	}
	full := t.full(id)
	if _, err := os.Stat(full); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return err
	}
	partial := full + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := t.writeEntries(partial, slices.Repeat([]string{id}, hundred)); err != nil {
		return err
	}
	return os.Rename(partial, full)
}

func (t *tables) full(id string) string { return filepath.Join(string(t.dir), "full", id) }

// writeEntries writes a folder of links to targets, numbered from 00.
func (t *tables) writeEntries(folder string, targets []string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for low, id := range targets {
		if err := link(t.dir.Target(id), filepath.Join(folder, twoDigits(low))); err != nil {
			return err
		}
	}
	return nil
}

func twoDigits(n int) string { return fmt.Sprintf("%02d", n) }

// link makes a relative link: it takes fewer steps to follow than an absolute one.
func link(to, from string) error {
	relative, err := filepath.Rel(filepath.Dir(from), to)
	if err != nil {
		return err
	}
	return os.Symlink(relative, from)
}

// removeAllBut removes everything in a folder but the names given.
func removeAllBut(folder string, keep ...string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("remove what is left over: %w", err)
	}
	for _, e := range entries {
		if slices.Contains(keep, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return fmt.Errorf("remove what is left over: %w", err)
		}
	}
	return nil
}
