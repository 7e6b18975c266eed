// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/serin-dev/serin/e2e/tools"
)

const versionPackage = "k8s.io/component-base/version"

// Build builds a minor version, such as "1.31", where the cache lacks it, and returns its newest
// release and the folder of its kube-apiserver and kube-controller-manager.
func Build(ctx context.Context, builder *tools.Builder, minor string) (version, folder string, err error) {
	var listed struct{ Versions []string }
	if err := goJSON(ctx, &listed, "list", "-m", "-versions", "-json", kubernetes); err != nil {
		return "", "", err
	}
	if version, err = newest(listed.Versions, minor); err != nil {
		return "", "", err
	}
	tool := tools.Tool{
		Name: "kubernetes-" + version, Package: ".", Programs: []string{"kube-apiserver", "kube-controller-manager"},
		Defines: []string{
			versionPackage + ".gitVersion=" + version,
			versionPackage + ".gitMajor=1", versionPackage + ".gitMinor=" + strings.TrimPrefix(semver.MajorMinor(version), "v1."),
		},
	}
	generated := *builder
	generated.Source = filepath.Join(builder.Cache, "modules")
	if err := generate(ctx, filepath.Join(generated.Source, tool.Name), version); err != nil {
		return "", "", fmt.Errorf("make a module of Kubernetes %s: %w", version, err)
	}
	programs, err := generated.Build(ctx, tool)
	if err != nil {
		return "", "", err
	}
	return version, programs.Folder("kube-apiserver"), nil
}

// generate writes the module, with the sums of all that it needs, unless it is there.
func generate(ctx context.Context, folder, version string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	var upstream struct{ GoMod string }
	if err := goJSON(ctx, &upstream, "mod", "download", "-json", kubernetes+"@"+version); err != nil {
		return err
	}
	text, err := os.ReadFile(upstream.GoMod)
	if err != nil {
		return err
	}
	if text, err = module(text, version); err != nil {
		return err
	}
	scratch := folder + ".partial"
	empty := filepath.Join(scratch, emptyModule)
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(empty, 0o750)); err != nil {
		return err
	}
	for name, content := range map[string]string{
		filepath.Join(scratch, "go.mod"): string(text), filepath.Join(scratch, "main.go"): program,
		filepath.Join(empty, "go.mod"): "module serin.dev/empty\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return err
		}
	}
	if _, err := goIn(ctx, scratch, "list", "-mod=mod", "-deps", "."); err != nil {
		return err
	}
	return os.Rename(scratch, folder)
}

func goJSON(ctx context.Context, into any, args ...string) error {
	out, err := goIn(ctx, os.TempDir(), args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// goIn runs the go command in a folder, and returns what it prints.
func goIn(ctx context.Context, folder string, args ...string) ([]byte, error) {
	var problems bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = folder, &problems
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problems.Bytes())
	}
	return out, nil
}
