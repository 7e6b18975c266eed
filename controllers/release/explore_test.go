// SPDX-License-Identifier: Apache-2.0

package release

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
)

// TestEveryReachableStateIsSound lets everybody move in every order: each
// controller, the router, time, traffic that is good, bad or absent, pods that don't
// get ready, users, and crashes of the operator before each of its writes. It visits
// every explored that can be reached within the budget of users and crashes, holds
// the invariants in each, and from each one lets the world go on undisturbed: it has
// to come to rest, and to the right one.
func TestEveryReachableStateIsSound(t *testing.T) {
	for _, c := range explorations {
		t.Run(c.name, func(t *testing.T) {
			n := *exploredActions
			if n == defaultActions && testing.Short() {
				n--
			}
			e := &exploration{t: t, start: newExplored(t, c.begin, n), seen: map[key]int32{}, ends: map[string]int{}}
			e.explore()
			got := e.size()
			t.Logf("%d user actions: %s; the longest way to rest has %d moves; at rest: %v", n, got, e.longest, e.ends)
			if n < defaultActions {
				return // one user action does not lead to every end
			}
			for _, end := range []string{"Gone", v1alpha1.ReasonStable, v1alpha1.ReasonRolledBack, v1alpha1.ReasonWaitingForApproval} {
				if e.ends[end] == 0 {
					t.Errorf("no way ends in %s: what is explored is not what it should be", end)
				}
			}
			if n == defaultActions {
				checkPage(t, c.name, got, e.longest)
			}
		})
	}
}

// page says how large the exploration is: it is the golden file of it.
var page = filepath.Join("..", "..", "docs", "verification.md")

// checkPage compares the size of an exploration with its row of the page's table, or
// writes it there with -update.
func checkPage(t *testing.T, name string, got size, longest int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("| %s | %s | %s | %s | %d |", name, thousands(got.states), thousands(got.transitions), thousands(got.rests), longest)
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*$`)
	if *golden.Update {
		if err := os.WriteFile(page, row.ReplaceAll(text, []byte(want)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found := string(row.Find(text)); found != want {
		t.Errorf("the exploration has another size by now: docs/verification.md says\n%s\nand not\n%s\nWrite it with -update, and correct the sum", found, want)
	}
}

// TestThePageSumsUpTheExploration adds the rows of the page.
func TestThePageSumsUpTheExploration(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, c := range explorations {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.name) + ` \| ([0-9,]+) \|`).FindSubmatch(text)
		if row == nil {
			t.Fatalf("docs/verification.md has no row for %q", c.name)
		}
		n, err := strconv.Atoi(strings.ReplaceAll(string(row[1]), ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if want := ": " + thousands(total) + " states."; !strings.Contains(string(text), want) {
		t.Errorf("docs/verification.md does not say %q", want)
	}
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// exploredActions is how many things users do on each way. One more takes many times
// as long.
var exploredActions = flag.Int("actions", defaultActions, "how many things users do in the exploration")

const defaultActions = 2

// size is what an exploration found.
type size struct{ states, transitions, rests int }

func (s size) String() string {
	return fmt.Sprintf("%d states, %d transitions, %d states at rest", s.states, s.transitions, s.rests)
}

// exploration is a search in breadth: the way to a violation is a shortest one.
type exploration struct {
	t     *testing.T
	start *explored

	seen        map[key]int32
	nodes       []node
	transitions int
	longest     int
	ends        map[string]int // states at rest by their reason
	twins       []twin
}

// node is one state that was reached.
type node struct {
	parent int32
	move   uint8
	// quiet is the explored that follows undisturbed; itself: at rest.
	quiet     int32
	quietMove uint8
	// future is a digest of all that can follow.
	future uint64
}

// twin is a state with the same key as an earlier one.
type twin struct {
	node  int32
	world *explored
	steps int // that were compared
}

type found struct {
	from  int32
	move  uint8
	quiet bool
	key   key
	world *explored // nil when it was seen before
}

// batch is how many states are expanded before their successors are sorted in.
const batch = 2048

func (e *exploration) explore() {
	var scratch []byte
	e.seen[e.start.key(&scratch)] = 0
	e.nodes = []node{{quiet: -1}}
	type open struct {
		id    int32
		world *explored
	}
	level := []open{{0, e.start}}
	for len(level) > 0 {
		var next []open
		for chunk := range slices.Chunk(level, batch) {
			results, ends := make([][]found, len(chunk)), make([]string, len(chunk))
			e.inParallel(len(chunk), func(i int, scratch *[]byte) {
				results[i], ends[i] = e.expand(chunk[i].id, chunk[i].world, scratch)
			})
			for i, successors := range results {
				n := &e.nodes[chunk[i].id]
				n.quiet, n.future = chunk[i].id, digest(successors)
				if ends[i] != "" {
					e.ends[ends[i]]++
				}
				e.transitions += len(successors)
				for _, f := range successors {
					id, known := e.seen[f.key]
					if !known {
						id = int32(len(e.nodes))
						e.seen[f.key] = id
						e.nodes = append(e.nodes, node{parent: f.from, move: f.move, quiet: -1})
						next = append(next, open{id, f.world})
					} else if f.world != nil && f.key.sampled() {
						e.twins = append(e.twins, twin{node: id, world: f.world})
					}
					if f.quiet {
						e.nodes[chunk[i].id].quiet, e.nodes[chunk[i].id].quietMove = id, f.move
					}
				}
			}
		}
		level = next
		e.checkTwins(int32(len(e.nodes) - len(level)))
	}
	e.checkCalm()
}

// sampled is whether twins with this key are followed.
func (k key) sampled() bool { return k[0] == 0 }

const (
	maxCalm     = 1000 // moves until rest
	maxFollowed = 50   // moves of a twin
)

func (e *exploration) inParallel(n int, do func(i int, scratch *[]byte)) {
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	var failed sync.Map
	for worker := range workers {
		wg.Go(func() {
			var scratch []byte
			for i := worker; i < n; i += workers {
				if err := violated(func() { do(i, &scratch) }); err != nil {
					failed.Store(worker, err)
					return
				}
			}
		})
	}
	wg.Wait()
	failed.Range(func(_, err any) bool {
		e.t.Fatal(err)
		return false
	})
}

// expand makes every move that is possible in a explored, and says where it is
// at rest; "" when an actor goes on undisturbed.
func (e *exploration) expand(id int32, x *explored, scratch *[]byte) (out []found, end string) {
	here := x.key(scratch)
	quiet := false
	for m := range moves {
		if !moves[m].can(x) {
			continue
		}
		next := x.clone()
		if err := violated(func() { next.move(m) }); err != nil {
			panic(violation(fmt.Sprintf("%v\n%s", err, e.scenario(id, uint8(m)))))
		}
		k := next.key(scratch)
		if moves[m].last && !quiet && (k == here || returns(next, here, scratch)) {
			quiet, end = true, e.rest(id, x)
		}
		if k == here {
			continue
		}
		f := found{from: id, move: uint8(m), key: k, world: next, quiet: moves[m].quiet && !quiet}
		if _, known := e.seen[k]; known && !k.sampled() {
			f.world = nil
		}
		quiet = quiet || f.quiet
		out = append(out, f)
	}
	if !quiet {
		end = e.rest(id, x)
	}
	return out, end
}

// returns reports whether the operator looks at more of the same and nothing becomes
// of it.
func returns(next *explored, here key, scratch *[]byte) bool {
	y := next.clone()
	for range 3 {
		if len(y.pending) > 0 || !y.awake() {
			break
		}
		y.decide()
	}
	return y.key(scratch) == here
}

// rest checks that a explored at rest is a right end, and names it.
func (e *exploration) rest(id int32, x *explored) string {
	if err := violated(x.checkRest); err != nil {
		panic(violation(fmt.Sprintf("%v\n%s", err, e.scenario(id))))
	}
	if x.gone {
		return "Gone"
	}
	return readyReason(x.ro)
}

func readyReason(ro *v1alpha1.Rollout) string {
	c := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

// scenario is how a explored was reached, with everything that was said on the way.
func (e *exploration) scenario(id int32, last ...uint8) string {
	way := slices.Clone(last)
	for ; id != 0; id = e.nodes[id].parent {
		way = append([]uint8{e.nodes[id].move}, way...)
	}
	x := newExplored(e.t, e.start.begin, e.start.actions)
	x.mute = false
	x.log = nil
	for _, m := range way {
		x.say("* %s", moves[m].name)
		err := violated(func() { x.move(int(m)) })
		for _, rs := range x.rss {
			x.say("    %s of %d: %d wanted, %d there, %d available", rs.name, rs.owner, rs.replicas, rs.existing, rs.available)
		}
		if err != nil {
			break
		}
	}
	return strings.Join(x.log, "\n")
}

// undisturbed is where a way begins, and its moves.
func (e *exploration) undisturbed(way []int32) (from int32, out []uint8) {
	for i := range way[1:] {
		out = append(out, e.nodes[way[i]].quietMove)
	}
	return way[0], out
}

// digest differs between two sets of successors.
func digest(successors []found) uint64 {
	var sum uint64
	for _, f := range successors {
		var k uint64
		for _, b := range f.key[:8] {
			k = k<<8 | uint64(b)
		}
		sum += k * (uint64(f.move)*2 + 3)
	}
	return sum
}

// checkTwins: what has the same key has the same future, or the exploration would
// not be one of every explored. States below the given one have been expanded.
func (e *exploration) checkTwins(expanded int32) {
	twins := e.twins
	followed := make([]twin, len(twins))
	e.inParallel(len(twins), func(i int, scratch *[]byte) { followed[i] = e.follow(twins[i], expanded, scratch) })
	e.twins = slices.DeleteFunc(followed, func(t twin) bool { return t.world == nil })
}

// follow goes on with a twin, by one of its moves each time, and compares all that can
// follow: what its key lacks may matter only moves later. It returns the twin where the
// state with its key is not expanded yet, and one without a world at the end.
func (e *exploration) follow(t twin, expanded int32, scratch *[]byte) twin {
	for ; t.node < expanded; t.steps++ {
		successors, _ := e.expand(t.node, t.world, scratch)
		if digest(successors) != e.nodes[t.node].future {
			panic(violation("two states with the same key have different futures:\n" + e.scenario(t.node)))
		}
		if len(successors) == 0 || t.steps == maxFollowed {
			return twin{}
		}
		f := successors[(int(t.node)+t.steps)%len(successors)]
		t.world = t.world.clone()
		t.world.move(int(f.move))
		t.node = e.seen[f.key]
	}
	return t
}

// checkCalm: undisturbed, every explored comes to rest (L1, L3).
func (e *exploration) checkCalm() {
	length := make([]int, len(e.nodes)) // moves until rest, plus one
	for i := range e.nodes {
		var way []int32
		n := int32(i)
		for length[n] == 0 && e.nodes[n].quiet != n {
			if len(way) > maxCalm {
				from, moved := e.undisturbed(way[:min(len(way), 100)])
				e.t.Fatalf("L1: it never comes to rest:\n%s", e.scenario(from, moved...))
			}
			way = append(way, n)
			n = e.nodes[n].quiet
		}
		length[n] = max(length[n], 1)
		for j, m := range slices.Backward(way) {
			length[m] = length[n] + len(way) - j
		}
		e.longest = max(e.longest, length[i]-1)
	}
}

func (e *exploration) size() size {
	s := size{states: len(e.nodes), transitions: e.transitions}
	for i, n := range e.nodes {
		if n.quiet == int32(i) {
			s.rests++
		}
	}
	return s
}

// violation is what a check found.
type violation string

// referee turns a failed check into a violation: it is found beside the goroutine of
// the test.
type referee struct{ testing.TB }

func (referee) Helper() {}

func (referee) Fatalf(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

func (referee) Fatal(args ...any) { panic(violation(fmt.Sprint(args...))) }

func violated(do func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case violation:
			err = fmt.Errorf("%s", string(v))
		default:
			panic(v)
		}
	}()
	do()
	return nil
}

const (
	// Everything takes as long as evidence takes to be stale, so that there are few
	// different times to wait.
	exploredWindow   = 21 * time.Second
	exploredHold     = exploredWindow
	exploredDeadline = 2 * exploredWindow
)
