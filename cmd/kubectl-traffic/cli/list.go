// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Listing is a command that lists the objects of one kind.
type Listing struct {
	Words
	// Kind is how the help calls the objects, such as Rollouts.
	Kind string
	// Heads are those of the table, behind the one of the namespace.
	Heads []Column
	// Empty is a list to read into, and Rows are what the table shows of it.
	Empty func() client.ObjectList
	Rows  func(list client.ObjectList, withNamespace bool, now time.Time) [][]string
}

// NewList makes the command list.
func NewList(c *Cluster, l Listing) *cobra.Command {
	var all bool
	var selector string
	var o *Output
	cmd := &cobra.Command{
		Use: "list", Short: l.Short, Long: l.Long, Example: l.Example, Args: Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			labels, err := selectorOf(selector)
			if err != nil {
				return err
			}
			api, namespace, err := c.Connect()
			if err != nil {
				return err
			}
			if all {
				namespace = ""
			}
			list := l.Empty()
			if err := api.List(cmd.Context(), list, client.InNamespace(namespace), labels); err != nil {
				return err
			}
			return o.list(cmd, api, list, l, all)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list objects of all namespaces")
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "label selector of the "+l.Kind+" to list")
	Complete(cmd, "selector", cobra.NoFileCompletions)
	o = AddOutput(cmd, AsWide, AsName, AsJSON, AsYAML)
	return cmd
}

func (o *Output) list(cmd *cobra.Command, api client.Client, list client.ObjectList, l Listing, all bool) error {
	if o.Object() {
		return o.Print(cmd.OutOrStdout(), api.Scheme(), list)
	}
	rows := l.Rows(list, all, time.Now())
	if len(rows) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "No %s found.\n", l.Kind)
		return nil
	}
	heads := l.Heads
	if all {
		heads = append(Columns("NAMESPACE"), heads...)
	}
	return o.Table(cmd.OutOrStdout(), heads, rows)
}
