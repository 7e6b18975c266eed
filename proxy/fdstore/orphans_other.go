// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fdstore

import "errors"

// adoptOrphans needs Linux: the supervisor runs in a container.
func adoptOrphans() error { return errors.ErrUnsupported }
