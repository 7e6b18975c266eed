// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func newRecordCommand(c *cli.Cluster) *cobra.Command {
	var revision string
	var list bool
	cmd := &cobra.Command{
		Use:   "record ROLLOUT [--revision REVISION] > windows.jsonl",
		Short: "Print the recording of a release",
		Long: `Record prints the recording of a release, window by window, in the format that "kubectl traffic rollout replay" reads:
the responses of both versions, the settings, the verdict after each window and the resulting action. It prints the
newest recorded release, or that of --revision.

Serin stores the recording when the release ends, and before that at the end of longer steps. The command reads it
from the AnalysisResult with the Rollout's name.`,
		Example: `  kubectl traffic rollout record website > windows.jsonl
  kubectl traffic rollout record website --list
  kubectl traffic rollout record website --revision 6d5f7c9b8d | kubectl traffic rollout replay -`,
		Args:              cli.Usage(cobra.ExactArgs(1)),
		ValidArgsFunction: cli.First(c.Rollouts),
	}
	cmd.Flags().StringVar(&revision, "revision", "", "revision whose newest release to print; the newest release of all if not set")
	cmd.Flags().BoolVar(&list, "list", false, "list the recorded releases")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		releases, err := recordedReleases(cmd, c, rolloutName(args[0]))
		switch {
		case err != nil:
			return err
		case list:
			return listRecordings(cmd, releases)
		}
		return printRecording(cmd, releases, revision)
	}
	return cmd
}

// recordedRelease is a release that is recorded.
type recordedRelease struct {
	revision string
	began    time.Time
	text     string
}

// recordedReleases are those of a Rollout, the newest first.
func recordedReleases(cmd *cobra.Command, c *cli.Cluster, name string) ([]recordedRelease, error) {
	api, namespace, err := c.Connect()
	if err != nil {
		return nil, err
	}
	result := &v1alpha1.AnalysisResult{}
	if err := api.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: name}, result); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("no release of the Rollout %q is recorded: %w", name, err)
		}
		return nil, err
	}
	var out []recordedRelease
	for key, text := range result.Status.Recordings {
		if revision, began, ok := recording.ParseKey(key); ok {
			out = append(out, recordedRelease{revision, began, string(text)})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no release of the Rollout %q is recorded yet; Serin records a release when it ends", name)
	}
	slices.SortFunc(out, func(a, b recordedRelease) int {
		return cmp.Or(b.began.Compare(a.began), strings.Compare(a.revision, b.revision))
	})
	return out, nil
}

func listRecordings(cmd *cobra.Command, releases []recordedRelease) error {
	var rows [][]string
	for _, r := range releases {
		windows, end := "unreadable", cli.OrNone("")
		if lines, err := recording.ReadText(r.text); err == nil {
			n := 0
			for i := range lines {
				n += max(lines[i].Merged, 1)
			}
			windows, end = strconv.Itoa(n), r.began.Add(time.Duration(*lines[len(lines)-1].T*float64(time.Second))).UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{r.revision, r.began.UTC().Format(time.RFC3339), end, windows})
	}
	return new(cli.Output).Table(cmd.OutOrStdout(), cli.Columns("REVISION", "STARTED", "RECORDED UNTIL", "WINDOWS"), rows)
}

func printRecording(cmd *cobra.Command, releases []recordedRelease, revision string) error {
	i := slices.IndexFunc(releases, func(r recordedRelease) bool { return revision == "" || r.revision == revision })
	if i < 0 {
		return fmt.Errorf("no release of revision %q is recorded; --list shows those that are", revision)
	}
	lines, err := recording.ReadText(releases[i].text)
	if err != nil {
		return fmt.Errorf("revision %s: %w", releases[i].revision, err)
	}
	for _, note := range notesOn(lines) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	if err := recording.Write(lines, out); err != nil {
		return err
	}
	return out.Flush()
}

// notesOn say what a recording lacks.
func notesOn(lines []recording.Line) (notes []string) {
	merged := 0
	for i := range lines {
		l := &lines[i]
		switch {
		case l.Gap == recording.GapRestarted && i == 0:
			notes = append(notes, "Serin restarted in the middle of the release: what it measured before is not recorded")
		case l.Gap == recording.GapRestarted:
			notes = append(notes, fmt.Sprintf("line %d: Serin restarted: windows of the %.0f seconds before are missing", i+1, *l.T-length(l)-*lines[i-1].T))
		case l.Gap == recording.GapLeftOut:
			notes = append(notes, "the oldest windows are left out, since the release was long")
		}
		if l.Merged > 0 {
			merged++
		}
	}
	if merged > 0 {
		notes = append(notes, fmt.Sprintf("%d lines at the beginning are each the sum of several windows, since the release was long; the rest is exact", merged))
	}
	return notes
}

func length(l *recording.Line) float64 {
	if l.Seconds == nil {
		return 0
	}
	return *l.Seconds
}
