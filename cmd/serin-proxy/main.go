// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/serin-dev/serin/cmd/program"
)

func main() { os.Exit(program.Run(program.Complete(newCommand()))) }
