// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/e2e/controlplane/pace"
	"github.com/serin-dev/serin/e2e/identities"
	"github.com/serin-dev/serin/traffic"
)

var (
	plane *controlplane.ControlPlane
	// tempo has tests wait where the machine is too slow for so many.
	tempo = pace.New(clock.RealClock{})
	admin client.Client
	chart []*unstructured.Unstructured
	// served is how the control plane serves TrafficSplits.
	served = traffic.Served{Version: splitv1.GroupVersion.Version}
)

var (
	// withoutPolicies has the API server serve no MutatingAdmissionPolicy, as that of Kubernetes
	// before 1.34, and most of 1.34 and 1.35.
	withoutPolicies = flag.Bool("without-policies", false, "serve no MutatingAdmissionPolicy; for tests named Webhook and OtherTools")
	// otherKubernetes has another version of Kubernetes serve; see make compat.
	otherKubernetes = flag.String("kubernetes", "", "folder with a kube-apiserver and a kube-controller-manager of another version")
	// servesPolicies is whether the control plane serves MutatingAdmissionPolicy of v1.
	servesPolicies bool
)

// atOnce is how many parallel tests run at a time, unless -parallel says so: they
// wait more than they compute. On a slow machine fewer do: see newScene.
const atOnce = "24"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // the flag is the testing package's
	}
	flag.Parse()
	debug.SetGCPercent(400) // time is scarcer than memory
	log := logr.Discard()
	if testing.Verbose() { // otherwise what the libraries say would hide which test failed
		log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(0)))
	}
	klog.SetLogger(log)
	ctrl.SetLogger(log)
	var err error
	if provider, err = identities.Start("reader", "editor", "promoter", "admin", "oncall", "stranger"); err != nil {
		fmt.Fprintln(os.Stderr, "start the provider of identities:", err)
		os.Exit(1)
	}
	options := controlplane.Options{
		ControllerManager: true, FakeNode: &fakenode.Options{}, Audit: true, APIServerArgs: append(policyArgs(), provider.APIServerArgs()...), Kubernetes: *otherKubernetes,
	}
	os.Exit(controlplane.Run(browsed{audited{m}}, options, func(c *controlplane.ControlPlane) {
		plane = c
		plane.Config.Wrap(tempo.Transport)
		if err := install(context.Background()); err != nil { // until the process ends
			fmt.Fprintln(os.Stderr, "install the chart:", err)
			_ = c.Stop() // the first error is the one to show
			os.Exit(1)
		}
	}))
}

// policyArgs have the API server serve MutatingAdmissionPolicy in both versions, or in none.
func policyArgs() []string {
	switch {
	case *otherKubernetes != "":
		return nil // what that version serves
	case !*withoutPolicies:
		return []string{"--runtime-config=admissionregistration.k8s.io/v1beta1=true"}
	}
	const v1 = "admissionregistration.k8s.io/v1/"
	return []string{"--feature-gates=MutatingAdmissionPolicy=false", "--runtime-config=" + v1 + "mutatingadmissionpolicies=false," + v1 + "mutatingadmissionpolicybindings=false"}
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

// install creates what the chart brings for a manager that runs in this process: the
// kinds, the rights of its service account, and its policies, those for some namespaces
// only that would disturb other tests; and the kinds of gateways and meshes.
func install(ctx context.Context) (err error) {
	if admin, err = client.New(plane.Config, client.Options{Scheme: newScheme()}); err != nil {
		return err
	}
	if chart, err = renderChart(ctx, "--set", "dashboard.enabled=true,dashboard.url=http://localhost:8080/"); err != nil {
		return err
	}
	_, err = admin.RESTMapper().RESTMapping(schema.GroupKind{Group: admissionv1.GroupName, Kind: "MutatingAdmissionPolicy"}, admissionv1.SchemeGroupVersion.Version)
	servesPolicies = err == nil
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	namespace := &corev1.Namespace{}
	namespace.Name = operatorSpace
	objects := append([]client.Object{namespace}, kinds(chart,
		"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")...)
	objects = append(objects, policies()...)
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	if err := installOthers(ctx); err != nil {
		return err
	}
	if err := putNodeInZone(ctx); err != nil {
		return err
	}
	if err := waitForKinds(ctx); err != nil {
		return err
	}
	if err := installWebhooks(ctx); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return startShared(ctx)
}

// installOthers creates the kinds of others that routers write.
func installOthers(ctx context.Context) error {
	for _, read := range []func(context.Context) ([]*unstructured.Unstructured, error){gatewayKinds, istioKinds} {
		definitions, err := read(ctx)
		if err != nil {
			return err
		}
		for _, o := range definitions {
			err := admin.Create(ctx, o)
			if *otherKubernetes != "" && apierrors.IsInvalid(err) { // its expressions are too new
				fmt.Fprintf(os.Stderr, "this Kubernetes refuses %s\n", o.GetName())
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", o.GetName(), err)
			}
		}
	}
	return nil
}

// waitForKinds waits until all kinds are served.
func waitForKinds(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, neverAfter, true, func(ctx context.Context) (bool, error) {
		definitions := &unstructured.UnstructuredList{}
		definitions.SetAPIVersion("apiextensions.k8s.io/v1")
		definitions.SetKind("CustomResourceDefinitionList")
		if err := admin.List(ctx, definitions); err != nil {
			return false, err
		}
		for i := range definitions.Items {
			if !isServed(ctx, &definitions.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

// isServed asks for the objects of a kind: that it is established says so a little early.
func isServed(ctx context.Context, definition *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version["name"].(string))
		list.SetKind(kind + "List")
		if admin.List(ctx, list) != nil {
			return false
		}
	}
	return true
}

// putNodeInZone puts the node on which all pods run that ask for no other one, those of
// proxies too, in a zone.
func putNodeInZone(ctx context.Context) error {
	node := &corev1.Node{}
	node.Name = fakenode.NodeName
	patch := []byte(`{"metadata":{"labels":{"` + corev1.LabelTopologyZone + `":"` + nodeZone + `"}}}`)
	return admin.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch))
}
