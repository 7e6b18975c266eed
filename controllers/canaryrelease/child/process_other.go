// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import (
	"context"
	"errors"
	"net/http"
)

// program needs Linux: the manager runs in a container.
type program struct {
	path   string
	limits Limits
}

func (program) run(context.Context, []byte, http.Handler) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
