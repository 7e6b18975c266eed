// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func newReplayCommand() *cobra.Command {
	var rollout string
	var set []string
	cmd := &cobra.Command{
		Use:   "replay [-f rollout.yaml | --set SETTING=VALUE]... windows.jsonl",
		Short: "Analyse recorded traffic again, to try other settings",
		Long: `Replay runs Serin's analysis over recorded windows of traffic and prints a line of JSON for each window: the evidence,
the verdict and the action that Serin would take. It needs no cluster. "-" reads the standard input.

A recording that "kubectl traffic rollout record" printed is analysed with the settings of the release, and
differences from the recorded verdicts are reported. --set replaces single settings: the fields of a Rollout's
spec.analysis, or the hold of all steps. With -f, the settings are those of a Rollout. Windows of your own are
analysed with the default settings unless -f is given.

Each line is one window; t is its end in seconds since the start:

  {"t": 5, "seconds": 5, "weight": 20, "step": 1, "canary": {"requests": 512, "failures": 3}, "stable": {"requests": 2048, "failures": 9}}

Without step, each change of the weight begins a step. canary and stable may have a latency: cumulative counts of
requests for upper bounds in seconds, such as "latency": {"le": [0.1, 0.5], "counts": [400, 500]}.

Exit status: 0 if every line was analysed, whatever the verdicts; 1 if a line, the Rollout or a file could not be
read; 2 on wrong usage.`,
		Example: `  kubectl traffic rollout replay windows.jsonl
  kubectl traffic rollout replay --set analysis.tolerance=1pp --set hold=5m windows.jsonl
  kubectl get rollouts.serin.dev shop -o yaml | kubectl traffic rollout replay -f - windows.jsonl`,
		Args: cli.Usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rollout == cli.Stdin && args[0] == cli.Stdin {
				return cli.WrongUsage(fmt.Errorf("the Rollout and the windows can't both be %q; name a file for one of them", cli.Stdin))
			}
			change, err := replay.ParseChange(set)
			if err != nil {
				return cli.WrongUsage(fmt.Errorf("--set: %w", err))
			}
			r := replayed{rollout: rollout, recording: args[0]}
			if len(set) > 0 {
				r.change = &change
			}
			return r.run(cmd)
		},
	}
	cmd.Flags().StringVarP(&rollout, "filename", "f", "", "file with a Rollout whose settings and steps to try; the recorded or default ones if not set")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a setting to try in place of the recorded one, such as analysis.tolerance=1pp or hold=5m")
	cmd.MarkFlagsMutuallyExclusive("filename", "set")
	return cmd
}

// replayed is what is judged again, and by what.
type replayed struct {
	// rollout is the file of a Rollout, or "".
	rollout string
	// change of the settings of the recording, or nil.
	change    *replay.Change
	recording string
}

// run reads everything before anything is written, so that what is printed was judged from
// windows that can all be read.
func (r replayed) run(cmd *cobra.Command) error {
	plan := replay.DefaultPlan()
	if r.rollout != "" {
		err := read(cmd, r.rollout, func(in io.Reader) (err error) {
			plan, err = replay.ReadPlan(in)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, note := range plan.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	var windows []replay.Window
	err := read(cmd, r.recording, func(in io.Reader) (err error) {
		if windows, err = replay.Read(in); err == nil && r.change != nil {
			windows, err = replay.Changed(windows, *r.change)
		}
		return err
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	differ, err := replay.Write(plan, windows, out)
	if err != nil {
		return fmt.Errorf("%s: %w", r.recording, err)
	}
	if differ > 0 && r.change == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %d of %d lines give another verdict than Serin's: another version of Serin made the recording, or the recording was changed\n", differ, len(windows))
	}
	return out.Flush()
}

// read hands over a file or the standard input; errors name it.
func read(cmd *cobra.Command, name string, use func(io.Reader) error) error {
	in, err := open(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := use(in); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func open(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == cli.Stdin {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	return os.Open(name)
}
