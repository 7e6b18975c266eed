// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/serin-dev/serin/e2e/demo/story"
)

// silence is the longest time without a line.
const silence = 10 * time.Second

// Plain writes one line per change, and one at least every ten seconds.
type Plain struct {
	out io.Writer
	// key is what the last line said apart from counts, at is when it was.
	key string
	at  time.Duration
	// told is the number of scenes whose end was told.
	told int
}

// NewPlain returns a view that writes to out.
func NewPlain(out io.Writer) *Plain { return &Plain{out: out} }

// Say implements story.View.
func (p *Plain) Say(line string) { fmt.Fprintln(p.out, clean(line)) }

// Show implements story.View.
func (p *Plain) Show(frame story.Frame) {
	s := describe(frame)
	p.tellScenes(s)
	key := s.key()
	if s.sceneTitle() == "" || key == p.key && s.elapsed-p.at < silence {
		return
	}
	p.key, p.at = key, s.elapsed
	fmt.Fprintln(p.out, s.line())
}

// tellScenes says which scene begins and how long the one before took.
func (p *Plain) tellScenes(s screen) {
	for p.told < len(s.scenes) {
		scene := s.scenes[p.told]
		switch scene.State {
		case story.Done:
			fmt.Fprintf(p.out, "%6s  done: %s (%s)\n", clockOf(s.elapsed), scene.Title, clockOf(scene.Took))
			p.told++
		case story.Failed:
			fmt.Fprintf(p.out, "%6s  FAILED: %s (%s)\n", clockOf(s.elapsed), scene.Title, clockOf(scene.Took))
			p.told++
		default:
			return
		}
	}
}

// key changes when a line is worth it.
func (s screen) key() string {
	parts := []string{s.sceneTitle(), s.step, s.reason, s.problem, weightOf(s.requested), weightOf(s.observed)}
	for _, v := range s.versions {
		parts = append(parts, fmt.Sprint(v.role, v.ready))
	}
	return strings.Join(append(parts, strconv.FormatInt(s.unanswered, 10)), "\x00")
}

// sceneTitle is the title of the scene that runs.
func (s screen) sceneTitle() string {
	for _, scene := range s.scenes {
		if scene.State == story.Running {
			return scene.Title
		}
	}
	return ""
}

// line is the whole screen in one line.
func (s screen) line() string {
	parts := []string{s.sceneTitle()}
	if s.step != "" {
		parts = append(parts, "step "+s.step)
	}
	if s.requested != nil {
		parts = append(parts, fmt.Sprintf("weight %s requested, %s live", weightOf(s.requested), weightOf(s.observed)))
	}
	for _, v := range s.versions {
		parts = append(parts, v.line())
	}
	if s.loaded {
		parts = append(parts, fmt.Sprintf("unanswered %d", s.unanswered))
	}
	if s.evidence.known {
		parts = append(parts, fmt.Sprintf("evidence %s of %s (%s)", number(s.evidence.value), number(s.evidence.needed), s.evidence.verdict))
	}
	if s.reason != "" {
		parts = append(parts, s.reason+": "+s.message)
	}
	if s.problem != "" {
		parts = append(parts, "PROBLEM: "+s.problem)
	}
	return fmt.Sprintf("%6s  %s", clockOf(s.elapsed), clean(strings.Join(parts, " | ")))
}

func (v versionRow) line() string {
	text := v.version
	if v.role != "" {
		text += " (" + v.role + ")"
	}
	return fmt.Sprintf("%s: %d pods, %s requests, %s failed", text, v.ready, count(v.requests), count(v.failed))
}

func weightOf(weight *int32) string {
	if weight == nil {
		return "unknown"
	}
	return percent(*weight)
}
