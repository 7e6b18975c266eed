// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net"
	"path/filepath"
	"strconv"

	"github.com/serin-dev/serin/e2e/cluster/pki"
	"github.com/serin-dev/serin/e2e/cluster/process"
)

const (
	// Domain is the DNS domain of the cluster.
	Domain = "cluster.local"

	issuer = "https://kubernetes.default.svc." + Domain
	// etcdQuota keeps etcd from refusing writes in a cluster that is never compacted, in bytes.
	etcdQuota = 8 << 30
)

// Users of the programs that talk to the API server. Their rights come from
// roles that every API server creates.
var (
	ControllerManagerUser = pki.User{Name: "system:kube-controller-manager"}
	SchedulerUser         = pki.User{Name: "system:kube-scheduler"}
	ProxyUser             = pki.User{Name: "system:kube-proxy"}
)

// Programs finds the file of a program by its name.
type Programs interface {
	Path(program string) string
}

// ControlPlane is what a control plane is run with.
type ControlPlane struct {
	Programs Programs
	// Dir holds data, sockets, kubeconfig files and logs.
	Dir string
	// Credentials are the keys and certificates.
	Credentials pki.Folder
	// Address and Port are where the API server listens. A loopback address is
	// not announced to the cluster: endpoints must not have one.
	Address net.IP
	Port    int
	// ServiceCIDR is where Services get their addresses from.
	ServiceCIDR string
	// AuditPolicy and AuditLog are files; without a policy nothing is logged.
	AuditPolicy, AuditLog string
	// APIServerArgs and ControllerManagerArgs are added at the end, where they win.
	APIServerArgs, ControllerManagerArgs []string
}

// Server is the URL of the API server.
func (c ControlPlane) Server() string {
	return "https://" + net.JoinHostPort(c.Address.String(), strconv.Itoa(c.Port))
}

// Kubeconfig is the path of the kubeconfig file of a program.
func (c ControlPlane) Kubeconfig(program string) string {
	return filepath.Join(c.Dir, program+".kubeconfig")
}

// EtcdSocket is the socket that etcd listens on: only the owner of the folder reaches it.
func (c ControlPlane) EtcdSocket() string { return filepath.Join(c.Dir, "etcd.sock") }

// Etcd stores the state of the API server. It does not wait for the disk: the state is worth nothing after a crash of the machine that the tests could not make again.
func (c ControlPlane) Etcd() process.Spec {
	return c.spec("etcd",
		"--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls=unix://"+c.EtcdSocket(),
		// Nobody else is to know it, and an address that cannot be reached shows if anybody tries.
		"--advertise-client-urls=http://127.0.0.111:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--quota-backend-bytes="+strconv.Itoa(etcdQuota),
	)
}

// APIServer is the Kubernetes API server.
func (c ControlPlane) APIServer() process.Spec {
	args := []string{
		"--etcd-servers=unix://" + c.EtcdSocket(),
		"--bind-address=" + c.Address.String(),
		"--advertise-address=" + c.Address.String(),
		"--secure-port=" + strconv.Itoa(c.Port),
		"--service-cluster-ip-range=" + c.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if c.Address.IsLoopback() {
		args = append(args, "--endpoint-reconciler-type=none")
	}
	args = append(args, c.apiServerCredentials()...)
	return c.spec("kube-apiserver", append(append(args, c.auditArgs()...), c.APIServerArgs...)...)
}

// apiServerCredentials are by what the API server knows others and others know it.
func (c ControlPlane) apiServerCredentials() []string {
	k := c.Credentials
	return []string{
		"--client-ca-file=" + k.Certificate(pki.ClusterCA),
		"--tls-cert-file=" + k.Certificate(pki.APIServer),
		"--tls-private-key-file=" + k.Key(pki.APIServer),
		"--kubelet-certificate-authority=" + k.Certificate(pki.ClusterCA),
		"--kubelet-client-certificate=" + k.Certificate(pki.KubeletClient),
		"--kubelet-client-key=" + k.Key(pki.KubeletClient),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + k.Certificate(pki.FrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + k.Certificate(pki.FrontProxy),
		"--proxy-client-key-file=" + k.Key(pki.FrontProxy),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + k.VerifyingKey(),
		"--service-account-signing-key-file=" + k.SigningKey(),
	}
}

func (c ControlPlane) auditArgs() []string {
	if c.AuditPolicy == "" {
		return nil
	}
	// One file, however large: who looks for requests reads no other.
	return []string{"--audit-policy-file=" + c.AuditPolicy, "--audit-log-path=" + c.AuditLog, "--audit-log-maxsize=100000"}
}

// ControllerManager runs the controllers of Kubernetes, among them that of Deployments.
func (c ControlPlane) ControllerManager() process.Spec {
	k := c.Credentials
	args := []string{
		"--kubeconfig=" + c.Kubeconfig("kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + k.SigningKey(),
		"--root-ca-file=" + k.Certificate(pki.ClusterCA),
		"--cluster-signing-cert-file=" + k.Certificate(pki.ClusterCA),
		"--cluster-signing-key-file=" + k.Key(pki.ClusterCA),
		"--leader-elect=false", // there is one, and it is to begin at once
		"--secure-port=0",
		// It makes an account and a token per controller at its start: the usual
		// limit of 20 requests per second would stretch that to five seconds.
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	}
	return c.spec("kube-controller-manager", append(args, c.ControllerManagerArgs...)...)
}

// Scheduler assigns pods to the node.
func (c ControlPlane) Scheduler() process.Spec {
	return c.spec("kube-scheduler",
		"--kubeconfig="+c.Kubeconfig("kube-scheduler"),
		"--leader-elect=false", // there is one, and it is to begin at once
		"--secure-port=0",
	)
}

// Log is the log file of a program.
func (c ControlPlane) Log(program string) string {
	return filepath.Join(c.Dir, "logs", program+".log")
}

func (c ControlPlane) spec(program string, args ...string) process.Spec {
	return process.Spec{Name: program, Path: c.Programs.Path(program), Args: args, Log: c.Log(program)}
}

// ServerNames are the DNS names that pods reach the API server by.
func ServerNames() []string {
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + Domain,
	}
}
