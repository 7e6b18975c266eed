// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// packages are the Debian packages that a node needs, with a file by which each
// is known to be there, however it came there.
var packages = []struct{ name, file string }{
	{"containerd", "/usr/bin/containerd"},
	{"runc", "/usr/sbin/runc"},
	{"containernetworking-plugins", "/usr/lib/cni/ptp"},
	{"nftables", "/usr/sbin/nft"},
	{"iproute2", "/usr/sbin/ip"},
	{"util-linux", nsenterPath},
}

const (
	// servicePolicy is asked by Debian's packages whether they may start what they install.
	servicePolicy = "/usr/sbin/policy-rc.d"
	// denyServices answers no. The remark tells ours from another's.
	denyServices = "#!/bin/sh\n# Put here by a local Serin cluster while it installs packages; it may be removed.\nexit 101\n"
)

// installPackages installs the Debian packages that are missing. Their services
// are not started: the cluster runs the programs itself, with its own files.
func (l *local) installPackages(ctx context.Context) error {
	var missing []string
	for _, item := range packages {
		if _, err := os.Stat(item.file); err != nil {
			missing = append(missing, item.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return &NotPossibleError{
			Reason: "these packages are missing and there is no apt-get to install them: " + strings.Join(missing, ", "),
			Remedy: "install them by the means of this system, or name an existing cluster with " + KubeconfigVariable,
		}
	}
	if err := denyServiceStarts(); err != nil {
		return err
	}
	l.options.say("installing the Debian packages %s", strings.Join(missing, ", "))
	install := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	err := aptGet(ctx, install...)
	if err != nil { // most likely there are no lists of packages yet, or old ones
		l.options.say("bringing the lists of packages up to date, then trying again")
		if err = aptGet(ctx, "update"); err == nil {
			err = aptGet(ctx, install...)
		}
	}
	return errors.Join(err, allowServiceStarts())
}

// denyServiceStarts puts the policy in place, unless the machine has one of its own.
func denyServiceStarts() error {
	file, err := os.OpenFile(servicePolicy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // it is a program
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep packages from starting services: %w", err)
	}
	_, err = file.WriteString(denyServices)
	return errors.Join(err, file.Close())
}

// allowServiceStarts takes the policy away if it is ours.
func allowServiceStarts() error {
	content, err := os.ReadFile(servicePolicy)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && string(content) != denyServices) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", servicePolicy, err)
	}
	return os.Remove(servicePolicy)
}

func aptGet(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet=2"}, args...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}
