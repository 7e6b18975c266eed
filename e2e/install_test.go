// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/cluster/rejection"
	"github.com/serin-dev/serin/e2e/demo"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/diagnosis"
	"github.com/serin-dev/serin/e2e/gateway"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// installation is Serin on a cluster with a gateway: one for all scenarios of a run.
type installation struct {
	checkout tools.Checkout
	// options name the cluster.
	options cluster.Options
	cluster *cluster.Cluster
	config  *rest.Config
	api     client.Client
	core    kubernetes.Interface
	stage   *stage.Stage
	gateway gateway.Gateway
	// ready is how long helm install took until all pods were ready, their image pulled; 0 where
	// an earlier run did it.
	ready time.Duration
	// metrics says where TrafficMetrics come from.
	metrics metricsSource
	// rejections are what the local cluster's node led nowhere, nil where an existing cluster is used.
	rejections *rejection.Recorder
}

// install makes the installation when the first scenario needs it.
var install = sync.OnceValues(func() (*installation, error) { return newInstallation(life) })

// wanted tells that a scenario has asked for the installation.
var wanted atomic.Bool

// requireCluster makes the installation, or ends the test where no cluster can run.
func requireCluster(t *testing.T) *installation {
	t.Helper()
	wanted.Store(true)
	i, err := install()
	if impossible, is := errors.AsType[*cluster.NotPossibleError](err); is {
		testenv.Missing(t, impossible.Reason, impossible.Remedy)
	}
	if err != nil {
		t.Fatal(mark, err)
	}
	return i
}

func newInstallation(ctx context.Context) (*installation, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	options, err := cluster.TestOptions()
	if err != nil {
		return nil, err
	}
	options.Out = os.Stderr
	c, err := cluster.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	i := &installation{checkout: checkout, options: options, cluster: c, gateway: gateway.Gateway{Cluster: c, Checkout: checkout, Out: os.Stderr}}
	if err := i.connect(); err != nil {
		return nil, err
	}
	if c.Local {
		if i.rejections, err = rejection.Record(ctx, c.NodeCommand, c.Services, clock.RealClock{}); err != nil {
			return nil, err
		}
	}
	if *keep && i.isThere(ctx) {
		return i, nil
	}
	return i, i.put(ctx)
}

// isThere tells whether Serin is installed already.
func (i *installation) isThere(ctx context.Context) bool {
	_, err := i.core.AppsV1().Deployments(stage.SystemNamespace).Get(ctx, stage.Release+"-manager", metav1.GetOptions{})
	return err == nil
}

// put puts the images, the gateway and Serin into the cluster.
func (i *installation) put(ctx context.Context) error {
	list := append([]images.Image{images.RedisServer, images.Echo}, images.Table...)
	if i.cluster.Local { // the node pulls the manager's image, with a password
		list = slices.DeleteFunc(list, func(image images.Image) bool { return image.Reference == images.Serin.Reference })
		pull, err := demo.Push(ctx, i.cluster, os.Stderr, images.Serin)
		if err != nil {
			return err
		}
		pull.OnlyManager = true
		i.stage.PullFrom(*pull)
	}
	if err := images.Load(ctx, images.NewBuilder(i.checkout, os.Stderr), i.cluster, list...); err != nil {
		return err
	}
	// The gateway comes before Serin, which looks at its start what kinds there are.
	if err := errors.Join(i.stage.Clean(ctx), i.gateway.Install(ctx)); err != nil {
		return fmt.Errorf("%w\n%s", err, diagnosis.Explain(ctx, i.core))
	}
	began := readPressure()
	err := i.stage.InstallRelease(ctx)
	ended := readPressure()
	i.ready = ended.at.Sub(began.at)
	fmt.Fprintf(os.Stderr, "helm install took %s; %s\n", i.ready.Round(100*time.Millisecond), began.since(ended))
	return err
}

// TestHelmInstallIsReadyWithinAMinute judges the installation that all scenarios use, which
// is made before any of them runs. Its values say where the images are, and nothing else.
func TestHelmInstallIsReadyWithinAMinute(t *testing.T) {
	i := requireCluster(t)
	if i.ready == 0 {
		t.Skip("an earlier run with -keep installed Serin")
	}
	list, err := i.core.AppsV1().Deployments(stage.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(mark, err)
	}
	if len(list.Items) == 0 {
		t.Error(mark, "helm install made no Deployment")
	}
	for _, d := range list.Items {
		if d.Status.AvailableReplicas != *d.Spec.Replicas {
			t.Errorf("%s %d of %d pods of %s are available after helm install", mark, d.Status.AvailableReplicas, *d.Spec.Replicas, d.Name)
		}
	}
	if i.ready > time.Minute {
		t.Error(mark, "helm install took", i.ready)
	}
}

// connect makes the clients of the cluster.
func (i *installation) connect() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = i.cluster.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: i.cluster.Context}
	var err1, err2, err3 error
	if i.config, err1 = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig(); err1 != nil {
		return err1
	}
	i.config.QPS, i.config.Burst = -1, -1 // several scenarios look often
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), splitv1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return err
	}
	i.core, err1 = kubernetes.NewForConfig(i.config)
	// Kinds that are installed later are found when they are asked for.
	i.api, err2 = client.New(i.config, client.Options{Scheme: scheme})
	i.stage, err3 = stage.New(stage.Options{
		Kubeconfig: i.cluster.Kubeconfig, Context: i.cluster.Context, Kubectl: i.cluster.Kubectl, Helm: i.cluster.Helm,
		Root: i.checkout.Root, Say: func(line string) { fmt.Fprintln(os.Stderr, line) }, Clock: clock.RealClock{},
	})
	return errors.Join(err1, err2, err3)
}

// uninstall removes what the tests installed, and their local cluster, even one that an
// interrupted run has left or whose start failed.
var uninstall = sync.OnceValue(func() error {
	if !wanted.Load() || *keep {
		return nil
	}
	ctx := context.Background()
	var errs []error
	// Each scenario has said so where there is none. An interrupted run removes the local cluster as it is.
	if i, err := install(); err == nil && (life.Err() == nil || !i.cluster.Local) {
		errs = append(errs, i.stage.Clean(ctx), i.gateway.Remove(ctx))
	}
	options, err := cluster.TestOptions()
	if err == nil {
		err = cluster.Down(ctx, options)
	}
	if !errors.Is(err, cluster.ErrNotPossible) { // then none was started
		errs = append(errs, err)
	}
	return errors.Join(errs...)
})
