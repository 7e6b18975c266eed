// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/story"
)

// WriteSummary writes the story in figures and whether every promise was kept.
// Next are commands to type next, one a line.
func WriteSummary(out io.Writer, s story.Summary, next []string) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-26s%s\n", name, fmt.Sprintf(format, args...))
	}
	b.WriteString("\nSummary\n")
	row("total", "%s", orNever(s.Took))
	row("v2 promoted in", "%s", orNever(s.Promoted))
	row("v3 out of traffic in", "%s, at most %d %% of the traffic went to it", orNever(s.OutOfTraffic), s.BadWeight)
	row("v3 rolled back in", "%s", orNever(s.RolledBack))
	row("pods of v2", "%d created, %d of them were tested as the canary and kept", s.PodsCreated, s.PodsKept)
	row("requests sent", "%s at %d a second", count(s.Sent), s.Rate)
	row("failed by v3", "%s of the %s that it answered", count(s.FailedByBad), count(s.BadAnswers))
	row("failed by anything else", "%s", count(s.FailedOtherwise))
	if s.ProxyKilled {
		row("", "(proxies were killed, and the connections that they had died with them)")
	}
	if s.Retried > 0 {
		row("", "(%s requests found their idle connection closed and were sent again by the client)", count(s.Retried))
	}
	for _, failure := range s.Unexplained {
		b.WriteString("    " + describeFailure(failure) + "\n")
	}
	b.WriteString(verdict(s.Broken))
	if len(next) > 0 {
		b.WriteString("\nWhat to type next\n  " + strings.Join(next, "\n  ") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// describeFailure is one failed request in a line.
func describeFailure(f generator.Failure) string {
	text := fmt.Sprintf("%s %s after %.3fs", f.Time.UTC().Format("15:04:05.000"), f.Kind, f.Seconds)
	if f.Status != 0 {
		text += fmt.Sprintf(", status %d", f.Status)
	}
	if f.Version != "" {
		text += ", " + f.Version
	}
	return clean(text + ": " + f.Detail)
}

func verdict(broken []string) string {
	if len(broken) == 0 {
		return "\nEvery promise was kept.\n"
	}
	var b strings.Builder
	b.WriteString("\nNot everything was as promised:\n")
	for _, sentence := range broken {
		b.WriteString("  * " + clean(sentence) + "\n")
	}
	return b.String()
}

func orNever(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return clockOf(d)
}
