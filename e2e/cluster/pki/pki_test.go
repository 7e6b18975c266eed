// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	now   = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	hosts = Hosts{DNSNames: []string{"kubernetes.default.svc"}, Addresses: []net.IP{net.IPv4(10, 96, 0, 1).To4()}, NodeName: "node-1"}
)

func newFolder(t *testing.T) Folder {
	t.Helper()
	folder := Folder(t.TempDir())
	if err := folder.Create(hosts, now); err != nil {
		t.Fatal(err)
	}
	return folder
}

func readCertificate(t *testing.T, folder Folder, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(folder.Certificate(name), folder.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func verify(t *testing.T, folder Folder, name, authority string, usage x509.ExtKeyUsage, host string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(readCertificate(t, folder, authority))
	_, err := readCertificate(t, folder, name).Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

func TestCertificatesAreGoodForTheirPurposeOnly(t *testing.T) {
	folder := newFolder(t)
	for _, test := range []struct {
		name, pair, authority string
		usage                 x509.ExtKeyUsage
		host                  string
		wantErr               bool
	}{
		{name: "the API server is known by its name", pair: APIServer, authority: ClusterCA, usage: x509.ExtKeyUsageServerAuth, host: "kubernetes.default.svc"},
		{name: "the API server is known by its address", pair: APIServer, authority: ClusterCA, usage: x509.ExtKeyUsageServerAuth, host: "10.96.0.1"},
		{name: "the API server is not known by another name", pair: APIServer, authority: ClusterCA, usage: x509.ExtKeyUsageServerAuth, host: "example.org", wantErr: true},
		{name: "the kubelet is known by the name of the node", pair: Kubelet, authority: ClusterCA, usage: x509.ExtKeyUsageServerAuth, host: "node-1"},
		{name: "a client cannot act as a server", pair: KubeletClient, authority: ClusterCA, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		{name: "the aggregator is known by its own authority", pair: FrontProxy, authority: FrontProxyCA, usage: x509.ExtKeyUsageClientAuth},
		{name: "the aggregator is no user of the cluster", pair: FrontProxy, authority: ClusterCA, usage: x509.ExtKeyUsageClientAuth, wantErr: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := verify(t, folder, test.pair, test.authority, test.usage, test.host); (err != nil) != test.wantErr {
				t.Errorf("verify: %v, want an error: %t", err, test.wantErr)
			}
		})
	}
}

func TestACompleteFolderIsKeptAndAnIncompleteOneIsMadeAnew(t *testing.T) {
	folder := newFolder(t)
	first := readCertificate(t, folder, ClusterCA).SerialNumber
	if err := folder.Create(hosts, now); err != nil {
		t.Fatal(err)
	}
	if got := readCertificate(t, folder, ClusterCA).SerialNumber; got.Cmp(first) != 0 {
		t.Error("a complete folder was made anew")
	}
	if err := os.Remove(folder.VerifyingKey()); err != nil {
		t.Fatal(err)
	}
	if err := folder.Create(hosts, now); err != nil {
		t.Fatal(err)
	}
	if got := readCertificate(t, folder, ClusterCA).SerialNumber; got.Cmp(first) == 0 {
		t.Error("an incomplete folder was kept")
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	folder := newFolder(t)
	for _, path := range []string{folder.Key(ClusterCA), folder.Key(APIServer), folder.SigningKey()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %s, want 0600", path, info.Mode())
		}
	}
}

func TestAKubeconfigNamesItsUser(t *testing.T) {
	folder := newFolder(t)
	content, err := folder.Kubeconfig("test", "https://10.96.0.1:443", User{Name: "alice", Groups: []string{"developers", "testers"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	if got := pair.Leaf.Subject.CommonName; got != "alice" {
		t.Errorf("the user is %q, want alice", got)
	}
	groups := slices.Sorted(slices.Values(pair.Leaf.Subject.Organization)) // a certificate holds a set
	if diff := cmp.Diff([]string{"developers", "testers"}, groups); diff != "" {
		t.Errorf("the groups (-want +got):\n%s", diff)
	}
	if config.Host != "https://10.96.0.1:443" {
		t.Errorf("the server is %s", config.Host)
	}
}

func TestAnAuthorityThatIsNotPEMIsAnError(t *testing.T) {
	if _, err := parseAuthority(Pair{Certificate: []byte("x"), Key: []byte("y")}); err == nil {
		t.Error("no error")
	}
}
