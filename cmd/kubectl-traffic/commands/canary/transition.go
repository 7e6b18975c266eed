// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// waitFlag is the flag --wait: whether to wait, and for how long.
type waitFlag struct {
	asked bool
	// limit is 0 for without end.
	limit time.Duration
}

// Set implements pflag.Value.
func (p *waitFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write a time such as 15m, or --wait alone to wait without end")
	}
	p.asked, p.limit = true, d
	return nil
}

// String implements pflag.Value.
func (p *waitFlag) String() string { return p.limit.String() }

// Type implements pflag.Value.
func (*waitFlag) Type() string { return "duration" }

// transition ends a CanaryRelease as a command says.
type transition struct {
	cluster *cli.Cluster
	output  *cli.Output
	dryRun  *string
	wait    waitFlag
	wanted  v1alpha1.CanaryTransition
}

// waitWords are in the help of each transition.
const waitWords = `

With --wait, the command returns when the transition is complete. The exit status is 3 if the transition needs your
help, or after the time-out.`

func newAdoptCommand(c *cli.Cluster) *cobra.Command {
	return newTransition(c, "adopt", v1alpha1.CanaryTransitionAdopted, cli.NewWords(
		"Adopt a canary: upgrade the Helm release to it",
		`Adopt sets spec.transition to Adopted: all traffic goes to the canary, the Helm release is upgraded with the canary's
values, and the canary's pods become pods of the release. A CanaryRelease that was deprecated can't be adopted.`,
		`  kubectl traffic canary adopt shop
  kubectl traffic canary adopt shop --wait=15m`,
	))
}

func newDeprecateCommand(c *cli.Cluster) *cobra.Command {
	return newTransition(c, "deprecate", v1alpha1.CanaryTransitionDeprecated, cli.NewWords(
		"Deprecate a canary: remove it from the Helm release",
		`Deprecate sets spec.transition to Deprecated: all traffic goes to the Helm release, then the canary and everything
that belongs to it is deleted. This is final. To undo an adoption, use helm rollback.`,
		`  kubectl traffic canary deprecate shop
  kubectl traffic canary deprecate shop --wait`,
	))
}

func newTransition(c *cli.Cluster, verb string, wanted v1alpha1.CanaryTransition, words cli.Words) *cobra.Command {
	t := &transition{cluster: c, wanted: wanted}
	cmd := &cobra.Command{
		Use: verb + " CANARYRELEASE", Short: words.Short, Long: words.Long + waitWords, Example: words.Example,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.CanaryReleases),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, canaryName(args[0])) },
	}
	cmd.Flags().Var(&t.wait, "wait", "wait until the transition is complete, for at most this time, such as 15m; no limit without a value or if 0")
	cmd.Flags().Lookup("wait").NoOptDefVal = "0s"
	cmd.Flags().Lookup("wait").DefValue = ""
	cli.Complete(cmd, "wait", cobra.NoFileCompletions)
	t.output = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	t.dryRun = cli.AddDryRun(cmd)
	return cmd
}

func (t *transition) check() error {
	if err := t.output.Check(); err != nil {
		return err
	}
	if t.wait.asked && *t.dryRun != cli.DryNone {
		return cli.UsageErrorf("--wait: a --dry-run makes no change to wait for; remove one of the two flags")
	}
	return cli.CheckDryRun(*t.dryRun)
}

func (t *transition) run(cmd *cobra.Command, name string) error {
	if err := t.check(); err != nil {
		return err
	}
	api, namespace, err := t.cluster.Connect()
	if err != nil {
		return err
	}
	cr := &v1alpha1.CanaryRelease{}
	cr.Namespace, cr.Name = namespace, name
	did, err := t.ask(cmd.Context(), api, cr)
	if err != nil {
		return err
	}
	if t.wait.asked {
		if err := cli.Wait(cmd.Context(), t.wait.limit, t.watch(api, cr, cmd.ErrOrStderr())); err != nil {
			return err
		}
		did = strings.ToLower(string(t.wanted))
	}
	return t.output.Done(cmd, api, cr, did, *t.dryRun)
}

// ask sets spec.transition, as far as --dry-run allows, and says what it did.
func (t *transition) ask(ctx context.Context, api client.Client, cr *v1alpha1.CanaryRelease) (string, error) {
	asked, err := rolloutapi.Writer{API: api, DryRun: *t.dryRun}.Transit(ctx, cr, t.wanted)
	if asked {
		return "requested: " + string(t.wanted), err
	}
	return "unchanged", err
}

// watch tells of each change until the transition has ended.
func (t *transition) watch(api client.Client, cr *v1alpha1.CanaryRelease, out io.Writer) cli.Watch {
	said, asked, ended := "", cr.DeepCopy(), false
	return cli.Watch{
		Look: func(ctx context.Context) (err error) {
			ended, err = t.look(ctx, api, cr, asked)
			return err
		},
		Show: func(failed error) (bool, error) {
			if ended {
				return true, nil
			}
			if line := t.line(cr, failed); line != said {
				fmt.Fprintln(out, line)
				said = line
			}
			return false, nil
		},
		End: func(end, _ error) error { return t.over(cr, end) },
	}
}

// line is what there is to tell.
func (t *transition) line(cr *v1alpha1.CanaryRelease, err error) string {
	if err != nil {
		return cli.OneLine(fmt.Sprintf("%s: it can't be read at present, and is tried again: %v", cr.Name, err))
	}
	_, state, sentence := rolloutview.CanaryState(cr)
	return cli.OneLine(fmt.Sprintf("%s: %s: %s", cr.Name, state, sentence))
}

// look reads the CanaryRelease that was asked, and tells whether there is nothing left to
// wait for.
func (t *transition) look(ctx context.Context, api client.Client, cr, asked *v1alpha1.CanaryRelease) (ended bool, err error) {
	err = api.Get(ctx, client.ObjectKeyFromObject(asked), cr)
	if apierrors.IsNotFound(err) || err == nil && cr.UID != asked.UID {
		asked.DeepCopyInto(cr)
		return true, t.withoutIt(cr)
	}
	if err != nil {
		return false, err
	}
	ended, why := rolloutview.Transited(cr, t.wanted)
	if why != nil {
		return false, cli.Missed(why)
	}
	return ended, nil
}

// withoutIt is what it means that the CanaryRelease is gone: its finalizer has taken
// the canary out.
func (t *transition) withoutIt(cr *v1alpha1.CanaryRelease) error {
	if t.wanted == v1alpha1.CanaryTransitionDeprecated {
		return nil
	}
	return cli.Missed(fmt.Errorf("the CanaryRelease %s was deleted before it was %s", cr.Name, strings.ToLower(string(t.wanted))))
}

func (t *transition) over(cr *v1alpha1.CanaryRelease, end error) error {
	why := cli.Ended(end, t.wait.limit)
	_, _, sentence := rolloutview.CanaryState(cr)
	return cli.Missed(fmt.Errorf("the CanaryRelease %s is not %s yet, and %s: %s", cr.Name, strings.ToLower(string(t.wanted)), why, sentence))
}
