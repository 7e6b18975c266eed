// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/recording"
)

// MaxLine is the longest line, in bytes, that is read.
const MaxLine = 1 << 20

// Window is one recorded window.
type Window struct {
	// Window is zero on a line that has only numbers of the user.
	analysis.Window
	// T is the end of the window in seconds since the start, as it was given.
	T float64
	// Step is the index of the step of the release; steps without a number are
	// distinguished by their weights.
	Step int
	// Line is the whole line.
	Line recording.Line
}

// epoch is where recordings begin that don't say it. The judge needs times, and any will do.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// Read reads all windows. The error names the line and the field.
func Read(in io.Reader) ([]Window, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	var read []recording.Line
	for lines.Scan() {
		l, err := recording.Parse(lines.Bytes())
		if err == nil && l.Release != nil && len(read) > 0 {
			err = errors.New("release: there already; give each recording a file of its own")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(read)+1, err)
		}
		read = append(read, l)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: longer than %d bytes; give one window on each line", len(read)+1, MaxLine)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", len(read)+1, err)
	case len(read) == 0:
		return nil, errors.New("no window; give one on each line")
	}
	return Windows(read), nil
}

// Windows are the lines of a recording.
func Windows(lines []recording.Line) []Window {
	began := epoch
	var windows []Window
	for _, l := range lines {
		if l.Release != nil {
			began = l.Release.Began
		}
		windows = append(windows, window(l, began, windows))
	}
	return windows
}

// window reads a line. Without a step, a change of weight begins one.
func window(l recording.Line, began time.Time, before []Window) Window {
	w := Window{T: *l.T, Line: l}
	if !l.OnlyValues() {
		w.Window = l.Window(began)
	}
	switch n := len(before); {
	case l.Step != nil:
		w.Step = *l.Step
	case n > 0:
		w.Step = before[n-1].Step
		if w.Weight != before[n-1].Weight {
			w.Step++
		}
	}
	return w
}

// at is the time of so many seconds, to the nanosecond.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}
