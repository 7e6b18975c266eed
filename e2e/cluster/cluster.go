// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/serin-dev/serin/e2e/cluster/component"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// Cluster is a cluster that answers.
type Cluster struct {
	// Kubeconfig is the path of the administrator's kubeconfig file. Context is
	// the context in it to use; its current one when empty.
	Kubeconfig, Context string
	// Kubectl and Helm are the paths of the programs.
	Kubectl, Helm string
	// Tools is a folder with all the programs of the local cluster, empty when an existing one is used.
	Tools string
	// Local tells whether this package runs the cluster.
	Local bool
	// MachineAddress is the address of this machine that pods of the local cluster
	// reach, empty when an existing one is used.
	MachineAddress string
	// Services is the network of the local cluster's Services, empty when an existing one is used.
	Services netip.Prefix

	options Options
	images  imageStore
	// network is the path of the network namespace of the local cluster's node.
	network string
}

// NodeCommand is a program of this machine in the network of the local cluster's node.
func (c *Cluster) NodeCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + c.network, "--", name}, args...)...)
}

// imageStore is where a cluster keeps its images.
type imageStore interface {
	// digests lists what is there, by reference.
	digests(ctx context.Context) (map[string]string, error)
	// load puts the image of an archive there.
	load(ctx context.Context, archive images.Archive) error
}

// Up makes sure that the cluster runs and answers: it builds and installs what
// is missing, starts what does not run, and waits until pods can be run and the
// names of Services resolve. When all is well already it changes nothing.
//
// The error matches [ErrNotPossible] where no node can run on this machine.
func Up(ctx context.Context, options Options) (*Cluster, error) {
	options, checkout, err := options.complete()
	if err != nil {
		return nil, err
	}
	if options.Existing() {
		return connect(ctx, options, checkout)
	}
	return upLocal(ctx, options, checkout)
}

// Down removes the local cluster with every trace of it. It may be called again,
// and after a start that failed half way. An existing cluster is left alone.
func Down(ctx context.Context, options Options) error {
	options, _, err := options.complete()
	if err != nil {
		return err
	}
	if options.Existing() {
		options.say("the cluster is not one that was started here: nothing to remove")
		return nil
	}
	return downLocal(ctx, options)
}

// ImportImages puts those images into the cluster that it does not have.
func (c *Cluster) ImportImages(ctx context.Context, archives ...images.Archive) error {
	known, err := c.images.digests(ctx)
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if known[archive.Reference] == archive.Digest {
			continue
		}
		c.options.say("importing %s", archive.Reference)
		if err := c.images.load(ctx, archive); err != nil {
			return fmt.Errorf("import %s: %w", archive.Reference, err)
		}
	}
	return nil
}

// offer links the built programs into one folder, under stable paths, for people.
func offer(folder string, programs tools.Set, names ...string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of programs: %w", err)
	}
	for _, name := range names {
		link, scratch := filepath.Join(folder, name), filepath.Join(folder, name+".new")
		_ = os.Remove(scratch) // left by an interrupted run, if at all; Symlink tells
		if err := os.Symlink(programs.Path(name), scratch); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		if err := os.Rename(scratch, link); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

// ProcessStatus is what is known of one program of the local cluster.
type ProcessStatus struct {
	// Name is the program.
	Name string
	// PID is the number of its process, 0 when it was never started.
	PID int
	// Running tells whether it runs now.
	Running bool
	// Log is the file that it writes to.
	Log string
}

// Status lists the programs of the local cluster in the order they are started.
// It changes nothing. There are none when the cluster was never started.
func Status(options Options) ([]ProcessStatus, error) {
	options, _, err := options.complete()
	if err != nil {
		return nil, err
	}
	return statusLocal(options)
}

// NotPossibleError says that a cluster cannot run on this machine, or not for
// this user, whatever is tried: tests skip, where another error fails them.
type NotPossibleError struct {
	// Reason is what is in the way.
	Reason string
	// Remedy is what a person can do about it.
	Remedy string
}

// ErrNotPossible is what [errors.Is] finds in every [NotPossibleError].
var ErrNotPossible = errors.New("a local cluster is not possible here")

// Error says what is in the way and what to do.
func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("%v: %s; %s", ErrNotPossible, e.Reason, e.Remedy)
}

// Is makes the error match [ErrNotPossible].
func (e *NotPossibleError) Is(target error) bool { return target == ErrNotPossible }

// registryHosts is what containerd reads about a registry.
const registryHosts = `server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`

// AllowHTTP has the nodes of a local cluster pull from a registry without TLS, such as one of
// a test on this machine.
func (c *Cluster) AllowHTTP(registry string) error {
	if !c.Local {
		return errors.New("how nodes pull images is only changed in a local cluster")
	}
	node := component.Node{ControlPlane: component.ControlPlane{Dir: c.options.Dir}}
	folder := filepath.Join(node.Registries(), registry)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the registry %s: %w", registry, err)
	}
	return os.WriteFile(filepath.Join(folder, "hosts.toml"), fmt.Appendf(nil, registryHosts, registry), 0o644)
}
