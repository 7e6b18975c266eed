// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutinit"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// initiation has the flags of the command init.
type initiation struct {
	cluster *cli.Cluster
	service string
	// tolerance in percentage points.
	tolerance string
	// perSecond and failureRate are used instead of what is measured; 0 and "" for none.
	perSecond   float64
	failureRate string
}

func newInitCommand(c *cli.Cluster) *cobra.Command {
	i := initiation{cluster: c}
	cmd := &cobra.Command{
		Use:   "init deployment/NAME",
		Short: "Write a Rollout for a Deployment",
		Long: `Init writes a Rollout for a Deployment to the standard output, as YAML with comments. It changes nothing in the cluster.

It finds the Service that selects the Deployment's pods, and reads the traffic of that Service from TrafficMetrics.
The proposed steps are long enough for that traffic: each step, or at least the last one, detects a canary whose
failure rate exceeds that of stable by the tolerance. With much traffic, the first step is small and short. With
little traffic, it is larger and longer, up to an hour; if that is not enough, the tolerance is raised. The comments
say what was measured and what was assumed.`,
		Example: `  kubectl traffic rollout init deployment/website > rollout.yaml
  kubectl traffic rollout init deployment/website --service website-public --tolerance 0.2pp
  kubectl traffic rollout init deployment/website --rps 40 --failure-rate 0.1%`,
		Args:              cli.Usage(cobra.ExactArgs(1)),
		ValidArgsFunction: cli.First(c.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed; {
			case given("rps") && !(i.perSecond > 0):
				return cli.UsageErrorf("--rps: give more than 0 requests per second, or leave it out to have the traffic measured")
			case given("failure-rate") && !given("rps"):
				return cli.UsageErrorf("--failure-rate: give --rps too; without it the failure rate is measured")
			}
			return i.run(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&i.service, "service", "", "the Service that clients call, if several select the pods")
	flags.StringVar(&i.tolerance, "tolerance", "0.5pp", "by how many percentage points the canary's failure rate may exceed that of stable")
	flags.Float64Var(&i.perSecond, "rps", 0, "requests per second to plan for, instead of the measured ones")
	flags.StringVar(&i.failureRate, "failure-rate", "0.1%", "the failure rate to plan for; used with --rps")
	for _, flag := range []string{"service", "tolerance", "rps", "failure-rate"} {
		cli.Complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func (i *initiation) run(cmd *cobra.Command, arg string) error {
	name, err := deploymentName(arg)
	if err != nil {
		return err
	}
	if _, err := v1alpha1.PercentagePoints(i.tolerance).Fraction(false, 50); err != nil {
		return cli.UsageErrorf("--tolerance: %w", err)
	}
	api, namespace, err := i.cluster.Connect()
	if err != nil {
		return err
	}
	d, service, err := i.find(cmd.Context(), api, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	draft := rolloutinit.Draft{Deployment: d, Service: service, Wanted: i.tolerance, Given: i.perSecond > 0}
	if draft.Traffic, draft.Unmeasured, err = i.traffic(cmd.Context(), client.ObjectKeyFromObject(service)); err != nil {
		return err
	}
	if draft.Proposal, err = rolloutview.Propose(draft.Traffic, v1alpha1.PercentagePoints(i.tolerance)); err != nil {
		return err
	}
	text, err := rolloutinit.Write(draft)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}

// deploymentName takes deployment/NAME, as kubectl does, and NAME.
func deploymentName(arg string) (string, error) {
	kind, name, found := strings.Cut(arg, "/")
	switch {
	case !found:
		return arg, nil
	case name != "" && (kind == "deployment" || kind == "deployments" || kind == "deploy" || strings.HasPrefix(kind, "deployment.")):
		return name, nil
	}
	return "", cli.UsageErrorf("%q is not a Deployment: write deployment/NAME; a Rollout of another kind of workload can't be proposed", arg)
}

// find reads the Deployment and its Service, and refuses a Deployment that a Rollout names.
func (i *initiation) find(ctx context.Context, api client.Client, key client.ObjectKey) (*appsv1.Deployment, *corev1.Service, error) {
	d := &appsv1.Deployment{}
	err := api.Get(ctx, key, d)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("there is no Deployment %s in the namespace %s: correct the name, or choose the namespace with -n", key.Name, key.Namespace)
	}
	if err != nil {
		return nil, nil, err
	}
	var rollouts v1alpha1.RolloutList
	if err := api.List(ctx, &rollouts, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, err
	}
	for _, ro := range rollouts.Items {
		if ref := ro.Spec.WorkloadRef; ref.Kind == v1alpha1.KindDeployment && ref.Name == d.Name {
			return nil, nil, fmt.Errorf("the Rollout %s releases the Deployment %s already; see kubectl traffic rollout get %s", ro.Name, d.Name, ro.Name)
		}
	}
	var services corev1.ServiceList
	if err := api.List(ctx, &services, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, err
	}
	service, err := rolloutinit.ServiceOf(d, services.Items, i.service)
	return d, service, err
}

// traffic is what to plan for; why is why it was not measured.
func (i *initiation) traffic(ctx context.Context, service client.ObjectKey) (now rolloutview.Traffic, why string, err error) {
	if i.perSecond > 0 {
		now.PerSecond = i.perSecond
		now.FailureRate, err = v1alpha1.Percent(i.failureRate).Fraction(true, 100)
		if err != nil {
			return now, "", cli.UsageErrorf("--failure-rate: %w", err)
		}
		return now, "", nil
	}
	now, missing := measure(ctx, i.cluster, service)
	if missing != nil {
		return rolloutinit.AssumedTraffic(), cli.OneLine(missing.Error()), nil
	}
	return now, "", nil
}
