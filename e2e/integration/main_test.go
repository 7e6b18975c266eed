// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

var (
	plane *controlplane.ControlPlane
	admin client.Client
	chart []*unstructured.Unstructured
	// served is how the control plane serves TrafficSplits.
	served = traffic.Served{Version: splitv1.GroupVersion.Version}
)

// atOnce is how many parallel tests run at a time, unless -parallel says so: they
// wait more than they compute.
const atOnce = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // the flag is the testing package's
	}
	flag.Parse()
	log := logr.Discard()
	if testing.Verbose() { // otherwise what the libraries say would hide which test failed
		log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(0)))
	}
	klog.SetLogger(log)
	ctrl.SetLogger(log)
	options := controlplane.Options{ControllerManager: true, FakeNode: &fakenode.Options{}, Audit: true}
	os.Exit(controlplane.Run(m, options, func(c *controlplane.ControlPlane) {
		plane = c
		if err := install(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "install the chart:", err)
			_ = c.Stop() // the first error is the one to show
			os.Exit(1)
		}
	}))
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, splitv1.AddVersionToScheme(served.Version), specsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two packages register the same kind
		}
	}
	return s
}

// install creates what the chart brings for a manager that runs in this process:
// the kinds, the rights of its service account, and the policy for pods that read
// copies. The other admission policies are up to each test.
func install(ctx context.Context) (err error) {
	if admin, err = client.New(plane.Config, client.Options{Scheme: newScheme()}); err != nil {
		return err
	}
	if chart, err = renderChart(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{}
	namespace.Name = operatorSpace
	objects := append([]client.Object{namespace}, kinds(chart,
		"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")...)
	objects = append(objects, configurationPolicies()...)
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return admin.List(ctx, &v1alpha1.RolloutList{}) == nil && admin.List(ctx, &splitv1.TrafficSplitList{}) == nil, nil
	})
}

// configurationPolicies are the policy for pods that read copies, and its binding.
func configurationPolicies() (out []client.Object) {
	for _, o := range kinds(chart, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding") {
		if o.GetName() == configurationPolicy {
			out = append(out, o)
		}
	}
	return out
}

// withoutConfigurationPolicy takes the policy away for the time of a test, which must
// not run in parallel.
func withoutConfigurationPolicy(t *testing.T) {
	t.Helper()
	for _, o := range configurationPolicies() {
		if err := admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			o.SetResourceVersion("")
			o.SetUID("")
			if err := admin.Create(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// guard puts the admission policy of the chart in force for the time of a test.
func guard(t *testing.T) {
	t.Helper()
	for _, o := range kinds(chart, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding") {
		if o.GetName() == configurationPolicy {
			continue
		}
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
}
