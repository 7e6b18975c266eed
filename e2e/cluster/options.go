// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/tools"
)

// Environment variables that name a cluster to use instead of a local one.
const (
	KubeconfigVariable = "SERIN_KUBECONFIG"
	ContextVariable    = "SERIN_CONTEXT"
)

// maxDirLength keeps the paths of sockets under the kernel's limit of 107 bytes.
const maxDirLength = 80

// Options say which cluster is meant. The zero value is the local cluster of the
// checkout that the working folder is in.
type Options struct {
	// Kubeconfig and Context name a cluster that exists already. With either of
	// them nothing is started or removed. The environment variables
	// SERIN_KUBECONFIG and SERIN_CONTEXT are used where both are empty.
	Kubeconfig, Context string
	// Dir is the folder of the local cluster: ".cache/cluster" at the root of the
	// checkout when empty. Clusters of different folders do not affect each other.
	Dir string
	// Out is told what is done. Standard error when nil.
	Out io.Writer
	// Clock tells the time. The real one when nil.
	Clock clock.Clock
}

// TestOptions mean the cluster of the end-to-end tests: the one that the environment
// names, and otherwise a local one in ".cache/e2e-cluster", beside that of the demo.
func TestOptions() (Options, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return Options{}, err
	}
	return Options{Dir: filepath.Join(checkout.State, "e2e-cluster")}.named(), nil
}

// named takes the cluster that the environment names, unless the options name one.
func (o Options) named() Options {
	if !o.Existing() {
		o.Kubeconfig, o.Context = os.Getenv(KubeconfigVariable), os.Getenv(ContextVariable)
	}
	return o
}

// Existing tells whether the options name a cluster that exists already.
func (o Options) Existing() bool { return o.Kubeconfig != "" || o.Context != "" }

// complete fills in what was left out.
func (o Options) complete() (Options, tools.Checkout, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return o, checkout, err
	}
	o = o.named()
	if o.Dir == "" {
		o.Dir = filepath.Join(checkout.State, "cluster")
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Dir, err = filepath.Abs(o.Dir)
	if err != nil {
		return o, checkout, fmt.Errorf("the folder of the cluster: %w", err)
	}
	if len(o.Dir) > maxDirLength {
		return o, checkout, fmt.Errorf("the folder of the cluster, %s, has %d characters and sockets in it allow at most %d: name a shorter one with --dir, or move the checkout",
			o.Dir, len(o.Dir), maxDirLength)
	}
	return o, checkout, nil
}

// say tells what is being done.
func (o Options) say(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }

// KubeconfigPath is the path of the kubeconfig file of the cluster that is
// meant. The file exists once [Up] has succeeded.
func KubeconfigPath(options Options) (string, error) {
	options, _, err := options.complete()
	if err != nil || options.Kubeconfig != "" {
		return options.Kubeconfig, err
	}
	return filepath.Join(options.Dir, "kubeconfig"), nil
}
