// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
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

// conflicts is how often, and after which waits, an object is read and written again that a controller wrote in
// between: eight times within 1.3 seconds. Controllers write in bursts, which outlast the 40 ms of retry.DefaultRetry
// where the cluster is busy.
var conflicts = wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1}

// RetryOnConflict reads and writes an object again when it was written in between.
func RetryOnConflict(readAndWrite func() error) error {
	return retry.RetryOnConflict(conflicts, readAndWrite)
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
