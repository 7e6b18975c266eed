// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficstats"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/schedule"
)

func newPlanCommand(c *cli.Cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan ROLLOUT",
		Short: "Show when each step begins and ends",
		Long: `Plan shows when each step of the current release, or of a release that would begin now, begins and ends at the
earliest. It takes into account the holds of the steps, the schedule of the Rollout and the Freezes of the cluster;
evidence may take longer. Nothing is known about the time after a step that waits for approval. A ramp and BlueGreen
are shown as the steps that Serin derives from them. The last line is the promotion.

FINDS is the smallest excess of the canary's failure rate over that of stable at which half of such releases would be
rolled back by the end of the step, if the Service keeps the traffic of the last window of TrafficMetrics. It is
"<none>" if the traffic is unknown, if nothing would be detected, or if nothing is compared. Freezes that you may not
read are left out, with a message.`,
		Example: `  kubectl traffic rollout plan website`,
	}
	return newReader(c, cmd, []string{cli.AsJSON, cli.AsYAML}, func(cmd *cobra.Command, api client.Client, ro *v1alpha1.Rollout, o *cli.Output) error {
		freezes, err := freezesFor(cmd, api, ro.Namespace)
		if err != nil {
			return err
		}
		calendar, err := schedule.Parse(ro.Spec.Schedule, freezes)
		if err != nil {
			return err
		}
		planned, err := rolloutview.Plan(ro, calendar, time.Now())
		if err != nil {
			return err
		}
		if now := trafficOf(c, cmd, ro); now != nil {
			if err := rolloutview.Detect(ro, planned, *now); err != nil {
				return err
			}
		}
		if o.Object() {
			return cli.PrintValue(cmd.OutOrStdout(), o.Form, planned)
		}
		return o.Table(cmd.OutOrStdout(), cli.Columns("STEP", "WEIGHT", "STATE", "BEGINS", "ENDS", "FINDS", "WAITS FOR"), planRows(planned))
	})
}

func planRows(planned []rolloutview.Planned) [][]string {
	var rows [][]string
	for _, p := range planned {
		row := []string{strconv.Itoa(p.Index + 1), fmt.Sprintf("%d%%", p.Weight), p.State, timeOf(p, p.Begins), timeOf(p, p.Ends), cli.OrNone(p.MinDetectableEffect), cli.OrNone(p.Waits)}
		if p.State == rolloutview.Promotion {
			row[0], row[4] = cli.OrNone(""), cli.OrNone("")
		}
		rows = append(rows, row)
	}
	return rows
}

// trafficOf is what the root Service receives at present; nil, with a warning, when that
// is not known.
func trafficOf(c *cli.Cluster, cmd *cobra.Command, ro *v1alpha1.Rollout) *rolloutview.Traffic {
	now, err := measure(cmd.Context(), c, client.ObjectKey{Namespace: ro.Namespace, Name: ro.Spec.Service})
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "What the steps would find is left out, as the present traffic is unknown: %v.\n", err)
		return nil
	}
	return &now
}

// measure is what a Service received in the last window.
func measure(ctx context.Context, c *cli.Cluster, service client.ObjectKey) (rolloutview.Traffic, error) {
	m, err := c.Metrics()
	if err != nil {
		return rolloutview.Traffic{}, err
	}
	list, err := m.Get(ctx, cli.Question{Kind: observe.Services, Namespace: service.Namespace, Name: service.Name})
	if err != nil {
		return rolloutview.Traffic{}, cli.Explained(err)
	}
	for _, row := range trafficstats.Rows(list.Items, metricsv1.DirectionFrom) {
		perSecond, known := row.RPS()
		success, some := row.SuccessRate()
		if known && some {
			return rolloutview.Traffic{PerSecond: perSecond, FailureRate: 1 - success}, nil
		}
	}
	return rolloutview.Traffic{}, fmt.Errorf("the Service %s received no request that was measured", service.Name)
}

// timeOf is a time of a step for users.
func timeOf(p rolloutview.Planned, t time.Time) string {
	switch {
	case p.State == rolloutview.Done:
		return "-"
	case t.IsZero():
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}

// freezesFor are the Freezes that concern a namespace, as far as the user may see them.
func freezesFor(cmd *cobra.Command, api client.Client, namespace string) ([]v1alpha1.Freeze, error) {
	freezes, err := rolloutapi.Freezes(cmd.Context(), api, namespace)
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Freezes are left out: %v.\n", cli.Explained(err))
		return nil, nil
	}
	return freezes, err
}
