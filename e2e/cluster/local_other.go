// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import (
	"context"
	"runtime"

	"github.com/serin-dev/serin/e2e/tools"
)

// errSystem is the answer on every system but Linux.
var errSystem = &NotPossibleError{
	Reason: "a node needs Linux and this is " + runtime.GOOS,
	Remedy: "name an existing cluster, for example one of kind, with " + KubeconfigVariable,
}

func upLocal(context.Context, Options, tools.Checkout) (*Cluster, error) { return nil, errSystem }

func downLocal(context.Context, Options) error { return errSystem }

func statusLocal(Options) ([]ProcessStatus, error) { return nil, errSystem }
