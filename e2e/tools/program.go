// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program builds a command of the repository, such as "cmd/serin", and returns the path
// of its binary, which is static and runs in an image. Where nothing has changed since the
// last time, the go command sees that by what it wrote into the binary, and links nothing.
// Several processes may ask at once.
func (c Checkout) Program(ctx context.Context, folder string) (string, error) {
	bin := filepath.Join(c.State, "bin")
	release, err := Lock(ctx, filepath.Join(bin, "lock"), nil)
	if err != nil {
		return "", err
	}
	defer release()
	output := filepath.Join(bin, strings.ReplaceAll(folder, "/", "-"))
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", output, ".")
	command.Dir = filepath.Join(c.Root, filepath.FromSlash(folder))
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOFLAGS=")
	if printed, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, printed)
	}
	return output, nil
}
