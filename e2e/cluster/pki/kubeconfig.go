// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User is an identity known to the API server by a client certificate.
type User struct {
	Name   string
	Groups []string
}

// Admin may do everything.
var Admin = User{Name: "serin-local-admin", Groups: []string{"system:masters"}}

// Kubeconfig renders a kubeconfig file for the user, with a new client
// certificate. Its cluster, user and only context are all called name.
func (f Folder) Kubeconfig(name, server string, user User, now time.Time) ([]byte, error) {
	authority, err := f.Authority()
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(Request{CommonName: user.Name, Organizations: user.Groups}, now)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority.Certificate}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("render the kubeconfig of %q: %w", user.Name, err)
	}
	return content, nil
}
