// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/e2e/tools"
)

// Who talks to the API server, as its audit log has it. What stands before the slash
// becomes the field manager too, which must not look like one of Serin's.
const (
	agentOfPeople  = "people/bench"
	agentOfProxies = "proxies/bench"
)

// Names of what the chart installs.
const (
	releaseName   = "serin"
	operatorSpace = "serin-system"
	operatorUser  = "system:serviceaccount:" + operatorSpace + ":" + releaseName
	policyAPI     = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
)

// program is what is measured: the binary, and the chart that says how it is run.
type program struct {
	binary string
	chart  []*unstructured.Unstructured
	// args are added to those that the chart has.
	args []string
}

// build makes the operator of this checkout, and renders its chart.
func build(ctx context.Context, out io.Writer) (program, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return program{}, err
	}
	var p program
	if p.binary, err = checkout.Program(ctx, "cmd/serin"); err != nil {
		return program{}, err
	}
	programs, err := checkout.Builder(out).Build(ctx, tools.Helm)
	if err != nil {
		return program{}, err
	}
	p.chart, err = renderChart(ctx, programs.Path("helm"), filepath.Join(checkout.Root, "charts", "serin"))
	return p, err
}

// startPlane starts a control plane with the fake node that logs what is counted.
func startPlane(ctx context.Context, dir string, out io.Writer) (*controlplane.ControlPlane, error) {
	args, err := Audit(dir)
	if err != nil {
		return nil, err
	}
	return controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, FakeNode: &fakenode.Options{}, APIServerArgs: args, Dir: dir, Out: out,
	})
}

// startAPI starts a control plane in which objects stay as they are made.
func startAPI(ctx context.Context, dir string, out io.Writer) (*controlplane.ControlPlane, error) {
	return controlplane.Start(ctx, controlplane.Options{Dir: dir, Out: out})
}

// ownPlane starts a control plane in a folder of its own; stop ends both.
func ownPlane(ctx context.Context, out io.Writer) (_ *controlplane.ControlPlane, stop func() error, err error) {
	return inOwnFolder(ctx, out, startPlane)
}

// inOwnFolder starts a control plane in a folder of its own; stop ends both.
func inOwnFolder(ctx context.Context, out io.Writer, start func(context.Context, string, io.Writer) (*controlplane.ControlPlane, error)) (_ *controlplane.ControlPlane, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "serin-bench-plane-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the control plane: %w", err)
	}
	plane, err := start(ctx, dir, out)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return plane, func() error { return errors.Join(plane.Stop(), os.RemoveAll(dir)) }, nil
}

// stage is a control plane with the chart installed, but for the operator itself.
type stage struct {
	plane   *controlplane.ControlPlane
	program program
	// admin has all rights; its template writes are found in the log.
	admin client.Client
}

func newStage(ctx context.Context, plane *controlplane.ControlPlane, p program) (*stage, error) {
	config := rest.CopyConfig(plane.Config)
	config.UserAgent = agentOfPeople
	admin, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, err
	}
	s := &stage{plane: plane, program: p, admin: admin}
	return s, s.install(ctx)
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, splitv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two packages register the same kind
		}
	}
	return s
}

// install creates everything of the chart but the operator, which runs beside the
// cluster. What is there already stays.
func (s *stage) install(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	namespace.Name = operatorSpace
	objects := []client.Object{namespace}
	for _, u := range inOrder(s.program.chart) {
		objects = append(objects, u.DeepCopy())
	}
	for _, o := range objects {
		if err := s.admin.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install the chart: %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.admin.List(ctx, &v1alpha1.RolloutList{}) == nil && s.admin.List(ctx, &splitv1.TrafficSplitList{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the chart's definitions: %w", err)
	}
	return nil
}
