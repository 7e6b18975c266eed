// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

func newLintCommand(c *cli.Cluster) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check Rollouts against the cluster, and give advice",
		Long: `Lint sends the objects of a file to the API server as a dry run, which validates them by its schema, its rules and its
admission policies. Unknown fields are errors. For Rollouts, lint adds advice about settings that are valid but seldom
intended. It changes nothing.

The exit status is 0 if every object is valid, whatever the advice, and 1 otherwise. "-" reads the standard input.`,
		Example: `  kubectl traffic rollout lint -f rollout.yaml`,
		Args:    cli.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := c.Manifests(cmd, file, "the Rollouts")
			if err != nil {
				return err
			}
			return lint(cmd, m.API, m.Namespace, m.Objects)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with Rollouts and other objects")
	return cmd
}

// lint tells of each object, and fails when the API server would refuse one.
func lint(cmd *cobra.Command, api client.Client, namespace string, objects []*unstructured.Unstructured) error {
	refused := 0
	for _, o := range objects {
		name := fmt.Sprintf("%s/%s", cli.LowerGroupKind(o.GroupVersionKind().GroupKind()), o.GetName())
		if err := tryOut(cmd.Context(), api, namespace, o); err != nil {
			refused++
			fmt.Fprintf(cmd.OutOrStdout(), "%s: refused: %s\n", name, cli.OneLine(cli.Explained(err).Error()))
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: would be accepted\n", name)
		for _, sentence := range adviceOn(o) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: advice: %s\n", name, sentence)
		}
	}
	if refused > 0 {
		return fmt.Errorf("the API server refuses %d of %d objects", refused, len(objects))
	}
	return nil
}

// tryOut applies an object without effect: whether or not it is there already.
func tryOut(ctx context.Context, api client.Client, namespace string, o *unstructured.Unstructured) error {
	namespaced, err := api.IsObjectNamespaced(o)
	if err != nil {
		return err
	}
	if namespaced && o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	return strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.DryRunAll, client.ForceOwnership, client.FieldOwner(cli.FieldManager))
}

func adviceOn(o *unstructured.Unstructured) []string {
	if o.GetKind() != "Rollout" || o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return nil
	}
	var ro v1alpha1.Rollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ro); err != nil {
		return []string{err.Error()}
	}
	return rolloutview.Advice(&ro)
}
