// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// looker reads what is followed.
type looker func(context.Context) (rolloutview.Snapshot, error)

// watcher shows the snapshot whenever it has changed, until it is settled, if that is waited
// for.
func (g *getter) watcher(look looker) cli.Watch {
	var snapshot rolloutview.Snapshot
	var shown picture
	return cli.Watch{
		Look: func(ctx context.Context) error {
			seen, err := look(ctx)
			if err == nil {
				snapshot = seen
			}
			return err
		},
		Show: func(failed error) (bool, error) {
			if now := g.picture(snapshot, failed); now != shown {
				if err := g.cluster.Screen.Show(now.body, now.foot); err != nil {
					return false, err
				}
				shown = now
			}
			if failed != nil {
				return false, nil //nolint:nilerr // it is shown above, and tried again
			}
			return g.settled(snapshot.Rollout)
		},
		End: g.over,
	}
}

// picture is what is shown of a snapshot.
type picture struct{ body, foot string }

// picture is the tree, or a line where the output is no terminal, with the error of the
// last look below it. A line that says nothing new is not written again for an error.
func (g *getter) picture(snapshot rolloutview.Snapshot, err error) picture {
	foot := ""
	if err != nil {
		foot = "It can't be read at present, and is tried again: " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n"
	}
	switch {
	case g.cluster.Screen.Terminal() && snapshot.Rollout != nil:
		return picture{rolloutview.Tree(snapshot), foot}
	case err != nil:
		return picture{foot: foot}
	}
	return picture{body: rolloutview.Line(snapshot.Rollout) + "\n"}
}

func (g *getter) settled(ro *v1alpha1.Rollout) (bool, error) {
	if g.until == "" || ro == nil {
		return false, nil
	}
	ready, failed := rolloutview.Settled(ro)
	if failed {
		return true, cli.Missed(fmt.Errorf("the Rollout %s does not become ready by itself: %s", ro.Name, rolloutview.Sentence(ro)))
	}
	return ready, nil
}

// over is what the end means: an error where something was waited for. The last look may
// have failed.
func (g *getter) over(end, last error) error {
	if g.until == "" {
		return nil
	}
	why := cli.Ended(end, g.timeout)
	if last != nil {
		return cli.Missed(fmt.Errorf("whether the Rollout is %s is not known, and %s; it could not be read: %w", g.until, why, last))
	}
	return cli.Missed(fmt.Errorf("the Rollout is not %s yet, and %s", g.until, why))
}
