// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Target is what a program is built for.
type Target struct {
	// OS and Architecture, as Go calls them.
	OS, Architecture string
	// Version is what the program says it is; when empty, what Go knows of the source.
	Version string
}

// versionVariable is where a program has its version.
const versionVariable = "github.com/serin-dev/serin/cmd/build.version"

// Program builds a command of the repository, such as "cmd/serin", for this machine and
// returns the path of its binary, which is static and runs in an image.
func (c Checkout) Program(ctx context.Context, folder string) (string, error) {
	return c.ProgramFor(ctx, folder, Target{OS: "linux", Architecture: runtime.GOARCH})
}

// ProgramFor builds a command of the repository and returns the path of its binary. The same
// source, toolchain and target give the same binary, wherever the repository is. Where nothing
// has changed since the last time, the go command sees that by what it wrote into the binary,
// and links nothing. Several processes may call it at once.
func (c Checkout) ProgramFor(ctx context.Context, folder string, target Target) (string, error) {
	bin := filepath.Join(c.State, "bin")
	if target != (Target{OS: "linux", Architecture: runtime.GOARCH}) {
		bin = filepath.Join(bin, target.OS+"-"+target.Architecture)
	}
	release, err := Lock(ctx, filepath.Join(bin, "lock"), nil)
	if err != nil {
		return "", err
	}
	defer release()
	output := filepath.Join(bin, strings.ReplaceAll(folder, "/", "-"))
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+target.linkFlags(), "-o", output, ".")
	command.Dir = filepath.Join(c.Root, filepath.FromSlash(folder))
	command.Env = append(os.Environ(), target.env()...)
	if printed, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s for %s/%s: %w\n%s", folder, target.OS, target.Architecture, err, printed)
	}
	return output, nil
}

// env has nothing of the caller's environment change the binary.
func (t Target) env() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=" + t.OS, "GOARCH=" + t.Architecture, "GOAMD64=v1", "GOARM64=v8.0"}
}

func (t Target) linkFlags() string {
	flags := "-s -w"
	if t.Version != "" {
		flags += " -X " + versionVariable + "=" + t.Version
	}
	return flags
}
