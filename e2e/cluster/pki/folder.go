// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Names of the pairs in a [Folder]: NAME.crt and NAME.key.
const (
	ClusterCA     = "ca"             // signs servers and users
	FrontProxyCA  = "front-proxy-ca" // signs only the aggregator
	APIServer     = "apiserver"      // what the API server shows to its clients
	FrontProxy    = "front-proxy"    // what it shows to aggregated API servers
	KubeletClient = "kubelet-client" // what it shows to the kubelet
	Kubelet       = "kubelet"        // what the kubelet shows to its clients
)

// signingKey names the key of service account tokens in a folder.
const signingKey = "service-account"

// Folder is a folder of keys and certificates. Only its owner can read it.
type Folder string

// Hosts are the names and addresses that the servers of a cluster are reached by.
type Hosts struct {
	DNSNames  []string
	Addresses []net.IP
	// NodeName is the name of the node whose kubelet gets a certificate.
	NodeName string
}

// Certificate is the path of the certificate of a pair.
func (f Folder) Certificate(name string) string { return filepath.Join(string(f), name+".crt") }

// Key is the path of the private key of a pair.
func (f Folder) Key(name string) string { return filepath.Join(string(f), name+".key") }

// SigningKey is the path of the private key that signs service account tokens.
func (f Folder) SigningKey() string { return filepath.Join(string(f), signingKey+".key") }

// VerifyingKey is the path of the public key that verifies service account tokens.
func (f Folder) VerifyingKey() string { return filepath.Join(string(f), signingKey+".pub") }

// Authority reads the authority that signs servers and users.
func (f Folder) Authority() (*Authority, error) {
	certificate, err := os.ReadFile(f.Certificate(ClusterCA))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	key, err := os.ReadFile(f.Key(ClusterCA))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	return parseAuthority(Pair{Certificate: certificate, Key: key})
}

// Create fills the folder unless it is complete. An incomplete one, left by an
// interrupted start, is made anew: parts of two generations do not fit together.
func (f Folder) Create(hosts Hosts, now time.Time) error {
	if _, err := os.Stat(f.VerifyingKey()); err == nil { // written last
		return nil
	}
	if err := errors.Join(os.RemoveAll(string(f)), os.MkdirAll(string(f), 0o700)); err != nil {
		return fmt.Errorf("make the folder of certificates: %w", err)
	}
	if err := f.createPairs(hosts, now); err != nil {
		return err
	}
	private, public, err := NewSigningKey()
	if err != nil {
		return err
	}
	return errors.Join(write(f.SigningKey(), private), write(f.VerifyingKey(), public))
}

// createPairs writes both authorities and what they sign.
func (f Folder) createPairs(hosts Hosts, now time.Time) error {
	cluster, err := NewAuthority("serin-local-cluster", now)
	if err != nil {
		return err
	}
	proxy, err := NewAuthority("serin-local-front-proxy", now)
	if err != nil {
		return err
	}
	errs := []error{f.write(ClusterCA, cluster.Pair), f.write(FrontProxyCA, proxy.Pair)}
	for _, item := range []struct {
		name      string
		authority *Authority
		request   Request
	}{
		{APIServer, cluster, Request{CommonName: "kube-apiserver", DNSNames: hosts.DNSNames, Addresses: hosts.Addresses}},
		{KubeletClient, cluster, Request{CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}}},
		{Kubelet, cluster, Request{CommonName: "system:node:" + hosts.NodeName, Organizations: []string{"system:nodes"}, DNSNames: []string{hosts.NodeName}, Addresses: hosts.Addresses}},
		{FrontProxy, proxy, Request{CommonName: "front-proxy-client"}},
	} {
		pair, err := item.authority.Issue(item.request, now)
		errs = append(errs, err, f.write(item.name, pair))
	}
	return errors.Join(errs...)
}

func (f Folder) write(name string, pair Pair) error {
	return errors.Join(write(f.Certificate(name), pair.Certificate), write(f.Key(name), pair.Key))
}

func write(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }
