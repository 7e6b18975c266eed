// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/serin/connect"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/trafficsplit/served"
	"github.com/serin-dev/serin/traffic"
)

// uninstallOptions are the flags of serin uninstall-check.
type uninstallOptions struct {
	namespaces         []string
	release, namespace string
	revision           int
	timeout            time.Duration
}

// NewUninstallCommand makes serin uninstall-check.
func NewUninstallCommand() *cobra.Command {
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall-check",
		Short: "Check that the operator has restored everything, as helm uninstall does",
		Long: `Check that the operator has restored everything, as helm uninstall does before it deletes anything.

It fails while a Rollout, a CanaryRelease or a TrafficSplit has something that
only the operator can restore, and while a Deployment is paused that a Rollout
managed. Objects that are being deleted are waited for. It changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects, err := newRestorables()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), objects, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.namespaces, "watch-namespace", nil, "namespace that the operator serves; can be repeated; default: all")
	flags.StringVar(&o.release, "release", "serin", "name of the Helm release, for the commands that are printed")
	flags.StringVar(&o.namespace, "namespace", "serin-system", "namespace of the Helm release")
	flags.IntVar(&o.revision, "revision", 1, "revision of the Helm release")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for objects that are being deleted")
	return cmd
}

// run waits for objects that are being deleted, and refuses when others are left.
func (o uninstallOptions) run(ctx context.Context, objects restorables, out io.Writer) error {
	var left leftovers
	err := wait.PollUntilContextTimeout(ctx, time.Second, o.timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = objects.find(ctx, o.namespaces)
		return !left.areGoing(), err
	})
	switch {
	case err != nil && !wait.Interrupted(err):
		return fmt.Errorf("what is left to restore is not known: %w", err)
	case len(left.objects)+len(left.paused) > 0:
		return errors.New(o.refusal(left))
	case err != nil:
		return fmt.Errorf("after %s what is left to restore is not known: %w", o.timeout, err)
	}
	_, err = fmt.Fprintln(out, "Nothing is left to restore.")
	return err
}

// refusal says what is left, and what to do.
func (o uninstallOptions) refusal(left leftovers) string {
	var b strings.Builder
	b.WriteString("Serin is not uninstalled, and nothing was changed.\n")
	if len(left.objects) > 0 {
		fmt.Fprintf(&b, "Only the operator can restore the Services and Deployments of:\n%s", list(left.objects, leftover.String))
		fmt.Fprintf(&b, "Delete these objects, and wait until they are gone:\n%s", o.deletion())
	}
	if len(left.paused) > 0 {
		fmt.Fprintf(&b, "Paused on a version whose release did not end:\n%s", list(left.paused, paused.String))
		b.WriteString("Revert the image unless you want to roll it out, and resume each of them:\n  kubectl --namespace NAMESPACE rollout resume deployment/NAME\n")
	}
	fmt.Fprintf(&b, "Then uninstall again. To keep Serin instead, tell Helm so before the next upgrade:\n  helm rollback %s %d --namespace %s\n", o.release, o.revision, o.namespace)
	b.WriteString("To install Serin again in the middle of releases, uninstall with --no-hooks: the proxies keep serving, and the next operator continues.")
	return b.String()
}

// deletion is what deletes the objects.
func (o uninstallOptions) deletion() string {
	if len(o.namespaces) == 0 {
		return "  kubectl delete rollouts.serin.dev,canaryreleases.serin.dev,trafficsplits.split.smi-spec.io --all --all-namespaces\n"
	}
	var lines strings.Builder
	for _, namespace := range o.namespaces {
		fmt.Fprintf(&lines, "  kubectl --namespace %s delete rollouts.serin.dev,canaryreleases.serin.dev,trafficsplits.split.smi-spec.io --all\n", namespace)
	}
	return lines.String()
}

// listed is how many objects a refusal names: a log is read by a user.
const listed = 20

// list has a line for each.
func list[T any](all []T, text func(T) string) string {
	var lines strings.Builder
	for i, item := range all {
		if i == listed {
			fmt.Fprintf(&lines, "  and %d more\n", len(all)-listed)
			break
		}
		fmt.Fprintf(&lines, "  %s\n", text(item))
	}
	return lines.String()
}

// leftovers are what only the operator can restore.
type leftovers struct {
	objects []leftover
	paused  []paused
}

// leftover is an object with a finalizer of Serin.
type leftover struct {
	resource, namespace, name string
	deleting                  bool
}

func (l leftover) String() string {
	line := fmt.Sprintf("%s %s/%s", l.resource, l.namespace, l.name)
	if l.deleting {
		line += " (is being deleted; if it stays, the operator is not running: see docs/how-to/stop-using-it.md)"
	}
	return line
}

// paused is a Deployment that a Rollout managed.
type paused struct{ namespace, name string }

func (p paused) String() string { return fmt.Sprintf("deployment %s/%s", p.namespace, p.name) }

// areGoing is whether to wait: there are objects, and all are being deleted.
func (l leftovers) areGoing() bool {
	return len(l.objects) > 0 && !slices.ContainsFunc(l.objects, func(o leftover) bool { return !o.deleting })
}

// restorables reads what may be left. The kinds are read by their metadata only, so that it
// does not matter of which version they are.
type restorables struct {
	meta    metadata.Interface
	cluster kubernetes.Interface
}

func newRestorables() (restorables, error) {
	config, err := connect.Config("serin-uninstall-check")
	if err != nil {
		return restorables{}, err
	}
	meta, err1 := metadata.NewForConfig(config)
	cluster, err2 := kubernetes.NewForConfig(config)
	return restorables{meta, cluster}, errors.Join(err1, err2)
}

// find reads everything once.
func (r restorables) find(ctx context.Context, namespaces []string) (left leftovers, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	splits, err := served.Discover(r.cluster.Discovery())
	if err != nil {
		return leftovers{}, err
	}
	kinds := map[schema.GroupVersionResource]string{
		v1alpha1.GroupVersion.WithResource("rollouts"):                                          v1alpha1.Finalizer,
		v1alpha1.GroupVersion.WithResource("canaryreleases"):                                    v1alpha1.FinalizerCanaryRelease,
		{Group: splitv1.GroupVersion.Group, Version: splits.Version, Resource: "trafficsplits"}: traffic.Finalizer,
	}
	for _, namespace := range namespaces {
		for resource, finalizer := range kinds {
			found, err := r.unrestored(ctx, resource, namespace, finalizer)
			if err != nil {
				return leftovers{}, err
			}
			left.objects = append(left.objects, found...)
		}
		found, err := r.paused(ctx, namespace)
		if err != nil {
			return leftovers{}, err
		}
		left.paused = append(left.paused, found...)
	}
	slices.SortFunc(left.objects, func(a, b leftover) int { return strings.Compare(a.String(), b.String()) })
	return left, nil
}

// unrestored are the objects of a kind with a finalizer; none where the kind is not served.
func (r restorables) unrestored(ctx context.Context, of schema.GroupVersionResource, namespace, finalizer string) (found []leftover, err error) {
	objects, err := r.meta.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", of.GroupResource(), err)
	}
	for _, o := range objects.Items {
		if slices.Contains(o.Finalizers, finalizer) {
			found = append(found, leftover{of.GroupResource().String(), o.Namespace, o.Name, o.DeletionTimestamp != nil})
		}
	}
	return found, nil
}

// paused are the Deployments that stay paused without a Rollout.
func (r restorables) paused(ctx context.Context, namespace string) (found []paused, err error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := r.cluster.AppsV1().Deployments(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list Deployments: %w", err)
		}
		for _, d := range page.Items {
			if d.Spec.Paused && shell.HoldsPause(&d, v1alpha1.FieldManager) {
				found = append(found, paused{d.Namespace, d.Name})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}
