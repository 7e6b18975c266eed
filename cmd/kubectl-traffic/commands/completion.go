// SPDX-License-Identifier: Apache-2.0

package commands

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

// completion proposes values to the shell. It never prints an error: the shell would
// offer its words.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete proposes values of a flag.
func complete(cmd *cobra.Command, flag string, values completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag is not there: a mistake in the command
	}
}

func fixed(values ...string) completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// first proposes values of the first argument.
func first(values completion) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd, args, begun)
	}
}

func (c *cluster) namespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.names(cmd.Context(), &corev1.NamespaceList{}, "")
}

func (c *cluster) splits(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &splitv1.TrafficSplitList{})
}

func (c *cluster) rollouts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &v1alpha1.RolloutList{})
}

func (c *cluster) canaryReleases(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.namesHere(cmd.Context(), &v1alpha1.CanaryReleaseList{})
}

// namesHere are the names of the objects in the namespace that was chosen.
func (c *cluster) namesHere(ctx context.Context, list client.ObjectList) ([]string, cobra.ShellCompDirective) {
	namespace, err := c.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.names(ctx, list, namespace)
}

func (c *cluster) names(ctx context.Context, list client.ObjectList, namespace string) (names []string, d cobra.ShellCompDirective) {
	api, err := c.client()
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
