// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Values of --dry-run.
const (
	DryNone   = "none"
	DryClient = "client"
	DryServer = "server"
)

// AddDryRun adds the flag --dry-run.
func AddDryRun(cmd *cobra.Command) *string {
	value := cmd.Flags().String("dry-run", DryNone, "none: change it; client: only show what would be changed; server: also ask the API server whether it would accept the change")
	Complete(cmd, "dry-run", Fixed(DryNone, DryClient, DryServer))
	return value
}

// CheckDryRun refuses other values.
func CheckDryRun(value string) error {
	switch value {
	case DryNone, DryClient, DryServer:
		return nil
	}
	return UsageErrorf("--dry-run: %q is not one of none, client, server", value)
}

// Patch writes, as far as --dry-run allows.
func Patch(ctx context.Context, api client.Client, o client.Object, p client.Patch, dry string) error {
	switch dry {
	case DryClient:
		return nil
	case DryServer:
		return api.Patch(ctx, o, p, client.DryRunAll)
	}
	return api.Patch(ctx, o, p)
}

// Done prints what was done to an object.
func (o *Output) Done(cmd *cobra.Command, api client.Client, object client.Object, did, dry string) error {
	if o.Object() {
		return o.Print(cmd.OutOrStdout(), api.Scheme(), object)
	}
	switch dry {
	case DryClient:
		did += " (dry run)"
	case DryServer:
		did += " (server dry run)"
	}
	gvk, err := api.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/%s %s\n", LowerGroupKind(gvk.GroupKind()), object.GetName(), did)
	return err
}

// LowerGroupKind is a kind as kubectl prints it before a name: "rollout.serin.dev".
func LowerGroupKind(gk schema.GroupKind) string {
	return strings.ToLower(gk.Kind) + "." + gk.Group
}
