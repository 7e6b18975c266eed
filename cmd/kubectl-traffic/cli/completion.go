// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Completion proposes values to the shell. It never prints an error: the shell would
// offer its words.
type Completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Complete proposes values of a flag.
func Complete(cmd *cobra.Command, flag string, values Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag is not there: a mistake in the command
	}
}

// Fixed proposes the given values.
func Fixed(values ...string) Completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// First proposes values of the first argument.
func First(values Completion) Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd, args, begun)
	}
}

func (c *Cluster) namespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd.Context(), &corev1.NamespaceList{}, "")
}

// Splits proposes the TrafficSplits of the namespace.
func (c *Cluster) Splits(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &splitv1.TrafficSplitList{})
}

// Rollouts proposes the Rollouts of the namespace.
func (c *Cluster) Rollouts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &v1alpha1.RolloutList{})
}

// CanaryReleases proposes the CanaryReleases of the namespace.
func (c *Cluster) CanaryReleases(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &v1alpha1.CanaryReleaseList{})
}

// namesHere are the names of the objects in the namespace that was chosen.
func (c *Cluster) namesHere(ctx context.Context, list client.ObjectList) ([]string, cobra.ShellCompDirective) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.names(ctx, list, namespace)
}

func (c *Cluster) names(ctx context.Context, list client.ObjectList, namespace string) (names []string, d cobra.ShellCompDirective) {
	api, err := c.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		if err == nil {
			names = append(names, object.GetName())
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
