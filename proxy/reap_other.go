// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proxy

import (
	"context"

	"github.com/go-logr/logr"
)

// Reap has nothing to do where there are no containers.
func Reap(context.Context, logr.Logger) {}
