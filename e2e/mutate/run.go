// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// Run tries all mutants of the lists, as many at a time as there are cores, and
// reports each. It returns an error unless every one is killed.
func Run(ctx context.Context, out io.Writer, options Options, lists []List) error {
	began := options.Clock.Now()
	r := report{out: out, count: map[Outcome]int{}}
	for _, list := range lists {
		if err := r.run(ctx, options, list); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), r.summary(options.Clock.Since(began)))
}

// run tries the mutants of one list.
func (r *report) run(ctx context.Context, options Options, list List) error {
	temporary, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // only files of ours
	began := options.Clock.Now()
	binary, broken, err := options.build(ctx, list, temporary)
	if err != nil {
		return err
	}
	built := options.Clock.Since(began)
	// A package whose tests fail without a change would kill any mutant.
	unchanged := options.try(ctx, list, binary, 0)
	if unchanged.Outcome != Survived {
		return fmt.Errorf("the tests of %s must pass before anything is changed: %s %s", list.Package, unchanged.Outcome, unchanged.Detail)
	}
	fmt.Fprintf(r.out, "%s: %d mutants, built in %v; the tests pass in %v\n",
		list.Package, len(list.Mutants), built.Round(time.Second), unchanged.Took.Round(time.Second))
	free := make(chan struct{}, runtime.NumCPU())
	var everything sync.WaitGroup
	defer everything.Wait() // before the binary goes
	for i, m := range list.Mutants {
		free <- struct{}{}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		everything.Go(func() {
			defer func() { <-free }()
			result, found := broken[i+1]
			if !found {
				result = options.try(ctx, list, binary, i+1)
			}
			result.Package, result.Mutant = list.Package, m
			r.add(result)
		})
	}
	return nil
}

// report writes results, and counts them.
type report struct {
	mutex sync.Mutex
	out   io.Writer
	count map[Outcome]int
	bad   []Result
}

func (r *report) add(result Result) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count[result.Outcome]++
	fmt.Fprintf(r.out, "  %-9s %3.0fs  %s: %s (%s)\n", result.Outcome, result.Took.Seconds(), result.Mutant.Func, result.Mutant.Why, result.Detail)
	if result.Outcome != Killed {
		r.bad = append(r.bad, result)
	}
}

// summary writes what was not killed, and the last line.
func (r *report) summary(took time.Duration) error {
	for _, b := range r.bad {
		fmt.Fprintf(r.out, "\n%s: %s %s: %s\n- %s\n+ %s\n%s\n", b.Outcome, b.Package, b.Mutant.Func, b.Mutant.Why, b.Mutant.Before, b.Mutant.After, b.Detail)
	}
	killed, survived := r.count[Killed], r.count[Survived]
	others := len(r.bad) - survived
	fmt.Fprintf(r.out, "\n%d mutants, %d killed, %d survived, %d not judged, in %v\n", killed+len(r.bad), killed, survived, others, took.Round(time.Second))
	if len(r.bad) > 0 {
		return fmt.Errorf("%d mutants were not killed", len(r.bad))
	}
	return nil
}
