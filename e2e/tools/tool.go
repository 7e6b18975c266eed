// SPDX-License-Identifier: Apache-2.0

package tools

import "strings"

// Tool is one binary that is built from a module of its own.
type Tool struct {
	// Name is the folder of the module beside this file, and the name in the cache.
	Name string
	// Package is the main package: an import path, or "." for the module itself.
	Package string
	// Programs are the names under which the binary is offered. A binary with
	// several of them decides by the name that it is called by.
	Programs []string
	// Defines are values given to string variables at link time, as
	// "import/path.variable=value".
	Defines []string
	// Without is what the binary lacks of the modules that it is built from, if anything.
	Without *Omission
}

const (
	// KubernetesVersion is the version that the control plane and the node
	// report. It has to agree with tools/kubernetes/go.mod; a test holds them together.
	KubernetesVersion = "v1.37.2"
	// TraefikVersion is the version that Traefik reports. It has to agree with
	// tools/traefik/go.mod; a test holds them together.
	TraefikVersion = "v3.6.12"

	versionPackage = "k8s.io/component-base/version"
)

var (
	// Kubernetes is etcd, the control plane, the node agents and kubectl.
	// Clients fail to parse the version of a binary that was linked without one.
	Kubernetes = Tool{
		Name:    "kubernetes",
		Package: ".",
		Programs: []string{
			"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
			"kubelet", "kube-proxy", "kubectl",
		},
		Defines: []string{
			versionPackage + ".gitVersion=" + KubernetesVersion,
			versionPackage + ".gitMajor=" + strings.Split(KubernetesVersion[1:], ".")[0],
			versionPackage + ".gitMinor=" + strings.Split(KubernetesVersion[1:], ".")[1],
		},
	}
	// Helm is the helm command line.
	Helm = Tool{Name: "helm", Package: "helm.sh/helm/v4/cmd/helm", Programs: []string{"helm"}}
	// CoreDNS is the DNS server of the cluster.
	CoreDNS = Tool{Name: "coredns", Package: ".", Programs: []string{"coredns"}}
	// Traefik is the implementation of the Gateway API that Serin is tested with.
	Traefik = Tool{
		Name:     "traefik",
		Package:  "github.com/traefik/traefik/v3/cmd/traefik",
		Programs: []string{"traefik"},
		Defines:  []string{"github.com/traefik/traefik/v3/pkg/version.Version=" + TraefikVersion},
		// More than a third of what Traefik is compiled from.
		Without: &Omission{Module: "github.com/go-acme/lego/v4", Folder: "providers/dns", Substitute: "dns.go"},
	}
	// Kind is the command that makes clusters of containers.
	Kind = Tool{Name: "kind", Package: "sigs.k8s.io/kind", Programs: []string{"kind"}}
	// NetworkPolicies enforces NetworkPolicies on a node.
	NetworkPolicies = Tool{
		Name:     "networkpolicies",
		Package:  ".",
		Programs: []string{"kube-network-policies"},
	}
	// ArgoCDDiff compares objects as Argo CD does.
	ArgoCDDiff = Tool{Name: "argocddiff", Package: ".", Programs: []string{"argocddiff"}}
)

// flags are the build flags followed by the package: what `go build` and
// `go list` must agree on to speak of the same compilation.
func (t Tool) flags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", t.linkFlags(), t.Package}
}

// linkFlags drops symbol tables, which halves the size of the binary.
func (t Tool) linkFlags() string {
	flags := []string{"-s", "-w"}
	for _, define := range t.Defines {
		flags = append(flags, "-X", define)
	}
	return strings.Join(flags, " ")
}
