// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"embed"
	"fmt"
	"net"
	"path/filepath"
	"text/template"

	"github.com/serin-dev/serin/e2e/cluster/pki"
	"github.com/serin-dev/serin/e2e/cluster/process"
)

// NetworkName is the name of the pod network in the records of the CNI plugins.
const NetworkName = "serin-local"

// DNSUser is the DNS server's identity. Its role is made with the cluster.
var DNSUser = pki.User{Name: "system:coredns"}

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*"))

// DNSPort is where the DNS server listens.
const DNSPort = 53

// Node is what a node is run with.
type Node struct {
	ControlPlane
	// NodeName is the node's name in the API.
	NodeName string
	// PodCIDR is where pods get their addresses from.
	PodCIDR string
	// DNSAddress is the address of the DNS Service.
	DNSAddress net.IP
	// PauseImage is the image that holds the namespaces of a pod.
	PauseImage string
	// Containerd is the file of the container runtime, CNIPlugins the folder of the network plugins.
	Containerd, CNIPlugins string
}

// Values that the templates use under other names.

// ContainerdSocket is where the container runtime listens.
func (n Node) ContainerdSocket() string { return filepath.Join(n.Dir, "containerd.sock") }

// Registries is the folder that says how registries are spoken to, in a folder for each. It is
// read for each image that is pulled.
func (n Node) Registries() string { return filepath.Join(n.Dir, "containerd", "registries") }

// NetworkName is the name of the pod network.
func (n Node) NetworkName() string { return NetworkName }

// DNSPort is where the DNS server listens.
func (n Node) DNSPort() int { return DNSPort }

// Domain is the DNS domain of the cluster.
func (n Node) Domain() string { return Domain }

// ClientCA is the certificate that the kubelet's clients are signed by.
func (n Node) ClientCA() string { return n.Credentials.Certificate(pki.ClusterCA) }

// ServingCertificate is what the kubelet shows to its clients.
func (n Node) ServingCertificate() string { return n.Credentials.Certificate(pki.Kubelet) }

// ServingKey is the key of ServingCertificate.
func (n Node) ServingKey() string { return n.Credentials.Key(pki.Kubelet) }

// ProxyKubeconfig is the path of kube-proxy's kubeconfig file.
func (n Node) ProxyKubeconfig() string { return n.Kubeconfig("kube-proxy") }

// DNSKubeconfig is the path of the DNS server's kubeconfig file.
func (n Node) DNSKubeconfig() string { return n.Kubeconfig("coredns") }

// KubeletUser is the identity of the kubelet, which the Node authorizer limits to its own objects.
func (n Node) KubeletUser() pki.User {
	return pki.User{Name: "system:node:" + n.NodeName, Groups: []string{"system:nodes"}}
}

// Files renders the configuration files, by path.
func (n Node) Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, path := range map[string]string{
		"containerd.toml": n.config("containerd.toml"),
		"kubelet.yaml":    n.config("kubelet.yaml"),
		"kube-proxy.yaml": n.config("kube-proxy.yaml"),
		"Corefile":        n.config("Corefile"),
		"cni.conflist":    filepath.Join(n.Dir, "cni", "net.d", "10-serin.conflist"),
	} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, n); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		files[path] = text.Bytes()
	}
	return files, nil
}

// ContainerRuntime runs the containers.
func (n Node) ContainerRuntime() process.Spec {
	config := n.config("containerd.toml")
	return process.Spec{
		Name: "containerd", Path: n.Containerd, Args: []string{"--config=" + config},
		Inputs: []string{config}, Log: n.Log("containerd"),
	}
}

// Kubelet runs the pods of the node.
func (n Node) Kubelet() process.Spec {
	config := n.config("kubelet.yaml")
	spec := n.spec("kubelet",
		"--config="+config,
		"--kubeconfig="+n.Kubeconfig("kubelet"),
		"--hostname-override="+n.NodeName,
		"--node-ip="+n.Address.String(),
		"--root-dir="+filepath.Join(n.Dir, "kubelet"),
		"--cert-dir="+filepath.Join(n.Dir, "kubelet", "pki"),
	)
	spec.Inputs = []string{config, n.Kubeconfig("kubelet")}
	return spec
}

// Proxy serves the addresses of Services.
func (n Node) Proxy() process.Spec {
	config := n.config("kube-proxy.yaml")
	spec := n.spec("kube-proxy", "--config="+config)
	spec.Inputs = []string{config, n.ProxyKubeconfig()}
	return spec
}

// DNS answers for the names of Services.
func (n Node) DNS() process.Spec {
	config := n.config("Corefile")
	spec := n.spec("coredns", "-conf", config)
	spec.Inputs = []string{config, n.DNSKubeconfig()}
	return spec
}

func (n Node) config(name string) string { return filepath.Join(n.Dir, "config", name) }
