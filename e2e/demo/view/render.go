// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/serin-dev/serin/e2e/demo/story"
)

const (
	// minWidth and maxWidth bound the picture whatever the terminal says.
	minWidth, maxWidth = 74, 110
	// barWidth is the length of a bar.
	barWidth = 24
	// labelWidth is the width of the first column of facts.
	labelWidth = 11
)

// The colours are those of the terminal's own palette, which its owner made
// legible on its background.
var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	busy  = lipgloss.NewStyle().Foreground(lipgloss.Cyan).Bold(true)
	label = lipgloss.NewStyle().Faint(true).Width(labelWidth)
)

// render draws the whole screen.
func (s screen) render(width int) string {
	width = min(max(width, minWidth), maxWidth)
	parts := []string{s.title(width), s.sceneList(), s.release(width)}
	if len(s.versions) > 0 {
		parts = append(parts, s.versionTable(width))
	}
	if s.problem != "" {
		parts = append(parts, bad.Width(width).Render("! "+clean(s.problem)))
	}
	picture := lipgloss.NewStyle().MaxWidth(width).Render(strings.Join(parts, "\n\n"))
	return lipgloss.NewStyle().Padding(0, 1).Render(picture)
}

func (s screen) title(width int) string {
	left, right := bold.Render("Serin demo"), clockOf(s.elapsed)
	gap := max(width-lipgloss.Width(left)-lipgloss.Width(right), 1)
	return left + strings.Repeat(" ", gap) + right
}

func (s screen) sceneList() string {
	var lines []string
	for _, scene := range s.scenes {
		mark, style := markOf(scene.State)
		line := style.Render(mark + " " + scene.Title)
		if scene.State != story.Waiting {
			line += faint.Render("  " + clockOf(scene.Took))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func markOf(state story.State) (string, lipgloss.Style) {
	switch state {
	case story.Running:
		return "●", busy
	case story.Done:
		return "✓", good
	case story.Failed:
		return "✗", bad
	default:
		return "·", faint
	}
}

// release shows the state of the Rollout, in lines that are always there so that
// the picture does not jump.
func (s screen) release(width int) string {
	return strings.Join([]string{
		label.Render("Rollout") + s.headline(),
		lipgloss.JoinHorizontal(lipgloss.Top, label.Render(""), s.explanation(width-labelWidth)),
		label.Render("Weight") + s.weightBar(),
		label.Render("Evidence") + s.evidenceBar(),
	}, "\n")
}

// explanation is the Rollout's own words in two lines, whatever their length.
func (s screen) explanation(width int) string {
	const lines = 2
	return lipgloss.NewStyle().Width(width).Height(lines).MaxHeight(lines).Render(orDash(clean(s.message)))
}

func (s screen) headline() string {
	line := bold.Render(orDash(clean(s.reason)))
	if s.step != "" {
		line += "  step " + clean(s.step)
	}
	if s.inPath {
		return line + faint.Render("  through Serin's proxies")
	}
	return line + faint.Render("  not through Serin's proxies")
}

func (s screen) weightBar() string {
	if s.requested == nil {
		return bar(0) + faint.Render("  no canary")
	}
	observed := "not known yet"
	share := 0.0
	if s.observed != nil {
		observed, share = percent(*s.observed)+" live", float64(*s.observed)/100
	}
	return bar(share) + fmt.Sprintf("  %s requested, %s", percent(*s.requested), observed)
}

func (s screen) evidenceBar() string {
	e := s.evidence
	if !e.known {
		return bar(0) + faint.Render("  nothing judged yet")
	}
	return bar(e.share()) + fmt.Sprintf("  %s of %s, %s of %s failed, %s",
		number(e.value), number(e.needed), count(e.failures), count(e.requests), clean(e.verdict))
}

func bar(share float64) string {
	full := int(share*barWidth + 0.5)
	return busy.Render(strings.Repeat("█", full)) + faint.Render(strings.Repeat("░", barWidth-full))
}

// versionTable shows who answered what.
func (s screen) versionTable(width int) string {
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(faint).Width(width).
		Headers("Version", "Role", "Ready pods", "Requests", "Failed", "p50 ms", "p99 ms").
		StyleFunc(s.cellStyle)
	for _, v := range s.versions {
		t.Row(v.version, orDash(v.role), strconv.Itoa(v.ready), count(v.requests), count(v.failed), latency(v.p50), latency(v.p99))
	}
	t.Row("none", "", "", "", count(s.unanswered), "", "")
	return t.String()
}

// failedColumn is the column of failed requests.
const failedColumn = 4

func (s screen) cellStyle(row, column int) lipgloss.Style {
	style := lipgloss.NewStyle().Padding(0, 1)
	if column >= 2 {
		style = style.Align(lipgloss.Right)
	}
	if row == table.HeaderRow {
		return style.Bold(true)
	}
	failed := s.unanswered
	if row < len(s.versions) {
		failed = s.versions[row].failed
	}
	if column == failedColumn && failed > 0 {
		return style.Inherit(bad)
	}
	return style
}

// clean takes control characters out of what the cluster says, so that no
// object can move the cursor of the terminal or change its title.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func percent(n int32) string { return fmt.Sprintf("%d %%", n) }

func latency(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return strconv.FormatFloat(ms, 'f', 1, 64)
}

// number prints a figure of evidence with three digits that matter.
func number(v float64) string {
	if v >= 1000 {
		return count(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// count prints a whole number with a comma between thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// clockOf prints a duration to the second.
func clockOf(d time.Duration) string { return d.Round(time.Second).String() }
