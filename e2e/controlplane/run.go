// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
)

// Tests are those of a package: a [testing.M], or what runs it.
type Tests interface{ Run() int }

// Run starts one control plane for all the tests of a package, gives it to use,
// runs the tests and stops it. It returns the exit status for [os.Exit]:
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { shared = c }))
//	}
func Run(m Tests, options Options, use func(*ControlPlane)) int {
	c, err := Start(context.Background(), options) //nolint:forbidigo // the main of a test package has no caller with a context
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the control plane: %v\n", err)
		return 1
	}
	use(c)
	status := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the control plane: %v\n", err)
		status = max(status, 1)
	}
	return status
}
