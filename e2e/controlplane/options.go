// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"os"

	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

// Options say what a control plane consists of. The zero value is etcd and the API server.
type Options struct {
	// ControllerManager runs the controllers of Kubernetes too.
	ControllerManager bool
	// FakeNode, when set, makes pods ready.
	FakeNode *fakenode.Options
	// Audit writes one line of JSON per request into [ControlPlane.AuditLog].
	Audit bool
	// APIServerArgs are added to the API server's, for example
	// "--feature-gates=Name=false".
	APIServerArgs []string
	// Kubernetes is a folder with a kube-apiserver and a kube-controller-manager of another
	// version. Those of [tools.Kubernetes] when empty.
	Kubernetes string
	// Dir keeps data and logs. A temporary folder, removed at the end, when empty.
	Dir string
	// Out is told what is built and what failed in the background. Standard error when nil.
	Out io.Writer
}

func (o Options) withDefaults() Options {
	if o.Out == nil {
		o.Out = os.Stderr
	}
	return o
}
