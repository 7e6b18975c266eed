// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/e2e/cluster/process"
)

type programs string

func (p programs) Path(program string) string { return string(p) + "/" + program }

func makeNode() Node {
	return Node{
		ControlPlane: ControlPlane{
			Programs: programs("/programs"), Dir: "/cluster", Credentials: "/cluster/pki",
			Address: net.IPv4(10, 243, 0, 1), Port: 6443, ServiceCIDR: "10.96.0.0/16",
		},
		NodeName: "node-1",
		PodCIDR:  "10.244.0.0/24", DNSAddress: net.IPv4(10, 96, 0, 10), PauseImage: "example.invalid/pause:1",
		Containerd: "/usr/bin/containerd", CNIPlugins: "/usr/lib/cni",
	}
}

func TestTheFilesOfANode(t *testing.T) {
	files, err := makeNode().Files()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 {
		t.Errorf("there are %d files, want 5", len(files))
	}
	for path, content := range files {
		golden.Check(t, filepath.Join("testdata", filepath.Base(path)), string(content))
	}
}

func TestTheProgramsOfACluster(t *testing.T) {
	node := makeNode()
	var text strings.Builder
	for _, spec := range []process.Spec{
		node.Etcd(), node.APIServer(), node.ControllerManager(), node.Scheduler(),
		node.ContainerRuntime(), node.Kubelet(), node.Proxy(), node.DNS(),
	} {
		fmt.Fprintf(&text, "%s > %s\n", spec.Path, spec.Log)
		for _, arg := range spec.Args {
			fmt.Fprintf(&text, "  %s\n", arg)
		}
	}
	golden.Check(t, filepath.Join("testdata", "programs.txt"), text.String())
}

func TestAServerOnLoopbackIsNotAnnounced(t *testing.T) {
	plane := makeNode().ControlPlane
	const flag = "--endpoint-reconciler-type=none"
	if slices.Contains(plane.APIServer().Args, flag) {
		t.Error("a server that pods can reach is not announced to them")
	}
	plane.Address = net.IPv4(127, 0, 0, 1)
	if !slices.Contains(plane.APIServer().Args, flag) {
		t.Error("a server on the loopback address is announced")
	}
}

func TestRequestsAreLoggedOnlyWithAPolicyAndExtraArgumentsComeLast(t *testing.T) {
	plane := makeNode().ControlPlane
	if args := strings.Join(plane.APIServer().Args, " "); strings.Contains(args, "--audit") {
		t.Errorf("requests are logged without a policy: %s", args)
	}
	plane.AuditPolicy, plane.AuditLog = "/policy", "/log"
	plane.APIServerArgs, plane.ControllerManagerArgs = []string{"--a"}, []string{"--b"}
	args := plane.APIServer().Args
	if !slices.Contains(args, "--audit-log-path=/log") || args[len(args)-1] != "--a" {
		t.Errorf("the arguments are %v", args)
	}
	if args := plane.ControllerManager().Args; args[len(args)-1] != "--b" {
		t.Errorf("the controller manager's arguments are %v", args)
	}
}
