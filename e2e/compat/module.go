// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	kubernetes = "k8s.io/kubernetes"
	// emptyModule stands for modules that no program imports.
	emptyModule = "./empty"
)

// program is either of the two, by the name that it is called by.
const program = `package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	programs := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	}
	os.Exit(cli.Run(programs[filepath.Base(os.Args[0])]()))
}
`

// module is the go.mod of a module that builds a version of Kubernetes, from the one of
// Kubernetes: what that has in folders of its repository is published with a version of its own.
func module(upstream []byte, version string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", upstream, nil)
	if err != nil {
		return nil, err
	}
	staging := "v0" + strings.TrimPrefix(version, "v1")
	errs := []error{f.AddModuleStmt("serin.dev/compat"), f.AddRequire(kubernetes, version)}
	for _, r := range f.Replace {
		if !strings.HasPrefix(r.New.Path, "./staging/") {
			continue
		}
		to, at := r.Old.Path, staging
		if strings.HasPrefix(path.Base(r.Old.Path), "sample-") {
			to, at = emptyModule, ""
		}
		errs = append(errs, f.AddReplace(r.Old.Path, "", to, at))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f.Format()
}

// newest is the newest release of a minor version, such as "1.31", among those that there are.
func newest(versions []string, minor string) (string, error) {
	found := ""
	for _, v := range versions {
		if semver.MajorMinor(v) == "v"+minor && semver.Prerelease(v) == "" && semver.Compare(v, found) > 0 {
			found = v
		}
	}
	if found == "" {
		return "", fmt.Errorf("no release of Kubernetes %q can be had: give a minor version, such as 1.31", minor)
	}
	return found, nil
}
