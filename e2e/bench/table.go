// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Write prints the report as tables in Markdown.
func (r Report) Write(w io.Writer) {
	if len(r.Releases) > 0 {
		fmt.Fprintf(w, "\nA complete promoted release with the router %s, weights %d and %d held for %s each:\n\n", r.Router, Weights[0], Weights[1], r.Hold)
		writeTable(w, r.releases())
		fmt.Fprintf(w, "\nThe requests of one release:\n\n")
		writeTable(w, r.requests())
	}
	if r.History != nil {
		fmt.Fprintf(w, "\nDeployments with old ReplicaSets, after a start:\n\n")
		writeTable(w, r.History.rows())
	}
	if r.Idle != nil {
		fmt.Fprintf(w, "\nRollouts that have nothing to do:\n\n")
		writeTable(w, r.Idle.rows())
	}
}

// rows of what the manager takes for Deployments with a history.
func (h History) rows() rows {
	return rows{
		{"Deployments", strconv.Itoa(h.Deployments)},
		{"old ReplicaSets of each", strconv.Itoa(h.Old)},
		{"bytes of a ReplicaSet, as JSON", strconv.Itoa(h.ReplicaSetSize)},
		{"memory, MiB", mebibytes(h.Resident)},
		{"of these the manager's own, MiB", mebibytes(h.Own)},
		{"peak memory since the start, MiB", mebibytes(h.Peak)},
		{"CPU seconds of the start", fmt.Sprintf("%.1f", h.CPU.Seconds())},
	}
}

func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) }

// rows of a table; the first is its head.
type rows [][]string

// figure is a row of the table of releases: a number with a way to write it.
type figure struct {
	name  string
	value func(Release) float64
	write func(float64) string
}

func figures() []figure {
	per := func(class Class, of ...Who) func(Release) float64 {
		return func(r Release) float64 { return float64(r.Tally.Sum(class, of...)) / float64(r.Size) }
	}
	took := func(d func(Release) time.Duration) func(Release) float64 {
		return func(r Release) float64 { return d(r).Seconds() }
	}
	return []figure{
		{"writes per release, for the Rollout", per(ClassWrite, ByRollouts), plain},
		{"writes per release, for the TrafficSplit", per(ClassWrite, BySplits), plain},
		{"writes per release, of the proxies", per(ClassWrite, ByProxies), plain},
		{"live reads per release", per(ClassRead), plain},
		{"events per release", per(ClassEvent), plain},
		{"CPU seconds per release", func(r Release) float64 { return r.CPU.Seconds() / float64(r.Size) }, func(v float64) string { return fmt.Sprintf("%.3f", v) }},
		{"memory before, MiB", func(r Release) float64 { return mebi(r.Before) }, whole},
		{"peak memory, MiB", func(r Release) float64 { return mebi(r.Peak) }, whole},
		{"template changed → first write, p50", took(func(r Release) time.Duration { return r.Reaction.Template.P50 }), duration},
		{"template changed → first write, p99", took(func(r Release) time.Duration { return r.Reaction.Template.P99 }), duration},
		{"pods available → weight, p50", took(func(r Release) time.Duration { return r.Reaction.Pods.P50 }), duration},
		{"pods available → weight, p99", took(func(r Release) time.Duration { return r.Reaction.Pods.P99 }), duration},
		{"the API server's time for a write, p50", took(func(r Release) time.Duration { return r.Reaction.Server.P50 }), duration},
		{"the API server's time for a write, p99", took(func(r Release) time.Duration { return r.Reaction.Server.P99 }), duration},
		{"changing the templates took", took(func(r Release) time.Duration { return r.Changing }), duration},
		{"until the last write", took(func(r Release) time.Duration { return r.Took }), duration},
	}
}

// releases has a column per size, and one for the growth to it from the size before.
func (r Report) releases() rows {
	head, replicas := []string{"releases at once"}, []string{"pods of each"}
	for i, one := range r.Releases {
		if i > 0 {
			head, replicas = append(head, "growth"), append(replicas, "")
		}
		head, replicas = append(head, strconv.Itoa(one.Size)), append(replicas, strconv.Itoa(int(one.Replicas)))
	}
	out := rows{head, replicas}
	for _, f := range figures() {
		row, needed := []string{f.name}, false
		for i, one := range r.Releases {
			v := f.value(one)
			if i > 0 {
				row = append(row, growth(f.value(r.Releases[i-1]), v))
			}
			row, needed = append(row, f.write(v)), needed || v != 0
		}
		if needed || f.name == "live reads per release" {
			out = append(out, row)
		}
	}
	return out
}

// requests has a row for each kind of request that any size needed.
func (r Report) requests() rows {
	head := []string{"", "by", "request"}
	all := Tally{Calls: map[Call]int{}}
	for _, one := range r.Releases {
		head = append(head, fmt.Sprintf("at %d", one.Size))
		for c := range one.Tally.Calls {
			if c.Class != ClassLease && c.Class != ClassWatch {
				all.Calls[c] = max(all.Calls[c], one.Tally.Calls[c]*1000/one.Size)
			}
		}
	}
	out := rows{head}
	for _, c := range all.Sorted() {
		row := []string{string(c.Class), string(c.Who), c.Verb + " " + c.What}
		for _, one := range r.Releases {
			row = append(row, plain(float64(one.Tally.Calls[c])/float64(one.Size)))
		}
		out = append(out, row)
	}
	return append(out, r.failed()...)
}

// failed has a row for each kind of request that was not answered with success.
// They are among the others too.
func (r Report) failed() rows {
	seen := map[string]bool{}
	for _, one := range r.Releases {
		for what := range one.Tally.Failed {
			seen[what] = true
		}
	}
	var out rows
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		row := []string{"failed", "", what}
		for _, one := range r.Releases {
			row = append(row, plain(float64(one.Tally.Failed[what])/float64(one.Size)))
		}
		out = append(out, row)
	}
	return out
}

func (i Idle) rows() rows {
	return rows{
		{"idle Rollouts", strconv.Itoa(i.Size)},
		{"pods of each", strconv.Itoa(int(i.Replicas))},
		{"watched for", i.For.String()},
		{"requests per minute", plain(float64(i.Tally.Requests()) / i.For.Minutes())},
		{"renewals of the lease per minute", plain(float64(i.Tally.Sum(ClassLease)) / i.For.Minutes())},
		{"renewals of watches per minute", plain(float64(i.Tally.Sum(ClassWatch)) / i.For.Minutes())},
		{"CPU, share of a core", fmt.Sprintf("%.2f %%", 100*i.CPU.Seconds()/i.For.Seconds())},
		{"memory, MiB", whole(mebi(i.Resident))},
		{"peak memory, MiB", whole(mebi(i.Peak))},
		{"peak memory since the start, MiB", whole(mebi(i.PeakSinceStart))},
		{"memory per Rollout, KiB", whole(float64(i.Resident) / 1024 / float64(max(i.Size, 1)))},
		{"writes and events at a restart", plain(float64(i.Restart.Tally.Sum(ClassWrite) + i.Restart.Tally.Sum(ClassEvent)))},
		{"CPU seconds of a restart", fmt.Sprintf("%.1f", i.Restart.CPU.Seconds())},
		{"peak memory of a restart, MiB", whole(mebi(i.Restart.Peak))},
	}
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// plain writes a count, with decimals only where it has any.
func plain(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func growth(from, to float64) string {
	if from == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", to/from)
}

// writeTable writes a table whose columns are aligned in plain text too.
func writeTable(w io.Writer, table rows) {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range table {
		for j, cell := range row {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(w, "|")
		if i > 0 {
			continue
		}
		for j := range row {
			fmt.Fprintf(w, "|%s", strings.Repeat("-", widths[j]+2))
		}
		fmt.Fprintln(w, "|")
	}
}
