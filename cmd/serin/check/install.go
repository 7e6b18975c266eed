// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/serin/connect"
	"github.com/serin-dev/serin/controllers/trafficsplit/served"
)

// installOptions are the flags of serin check.
type installOptions struct {
	namespace   string
	deployments []string
	hold        bool
	timeout     time.Duration
}

// NewInstallCommand makes serin check.
func NewInstallCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that the cluster serves the API and that the operator is ready, as helm test does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.hold && len(o.deployments) == 0 {
				return errors.New("--hold: give --deployment too, on which it is tried")
			}
			config, err := connect.Config("serin-check")
			if err != nil {
				return err
			}
			cluster, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("reach the API: %w", err)
			}
			return o.run(cmd.Context(), cluster, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the Deployments")
	flags.StringSliceVar(&o.deployments, "deployment", nil, "name of a Deployment that has to be ready; can be repeated")
	flags.BoolVar(&o.hold, "hold", false, "check that the write that changes a managed Deployment pauses it, by a dry run on the first --deployment")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for what is missing")
	return cmd
}

// run waits until nothing is missing.
func (o installOptions) run(ctx context.Context, cluster kubernetes.Interface, out io.Writer) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, time.Second, o.timeout, true, func(ctx context.Context) (bool, error) {
		missing = o.missing(ctx, cluster)
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s: %w", o.timeout, missing)
	}
	_, err = fmt.Fprintf(out, "The cluster serves %s and TrafficSplits, and %v are ready.\n", v1alpha1.GroupVersion, o.deployments)
	return err
}

// missing is the first thing that is not there.
func (o installOptions) missing(ctx context.Context, cluster kubernetes.Interface) error {
	if _, err := cluster.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String()); err != nil {
		return fmt.Errorf("the cluster does not serve %s: %w; install the chart with crds.serin", v1alpha1.GroupVersion, err)
	}
	if _, err := served.Discover(cluster.Discovery()); err != nil {
		return err
	}
	for _, name := range o.deployments {
		d, err := cluster.AppsV1().Deployments(o.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the Deployment %s: %w", name, err)
		}
		if !isReady(d) {
			return fmt.Errorf("the Deployment %s has %d of %d pods ready: see kubectl --namespace %s describe pods", name, d.Status.ReadyReplicas, *d.Spec.Replicas, o.namespace)
		}
	}
	if o.hold {
		return o.unheld(ctx, cluster)
	}
	return nil
}

// changeManaged is a change of the template of a Deployment that a Rollout manages.
const changeManaged = `{"metadata":{"annotations":{"` + v1alpha1.AnnotationRollout + `":"check"}},
	"spec":{"template":{"metadata":{"annotations":{"` + v1alpha1.AnnotationRollout + `":"check"}}}}}`

// unheld is why a changed Deployment is not paused. Nothing is stored.
func (o installOptions) unheld(ctx context.Context, cluster kubernetes.Interface) error {
	d, err := cluster.AppsV1().Deployments(o.namespace).Patch(ctx, o.deployments[0], types.MergePatchType, []byte(changeManaged),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "serin-check"})
	if err != nil {
		return fmt.Errorf("change a managed Deployment in a dry run: %w", err)
	}
	if !d.Spec.Paused {
		return errors.New("the write that changes a managed Deployment does not pause it: see docs/compatibility.md, What holds a changed Deployment")
	}
	return nil
}

// isReady is whether all pods of a Deployment are those of its template, and ready.
func isReady(d *appsv1.Deployment) bool {
	want, s := *d.Spec.Replicas, d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.ReadyReplicas == want
}
