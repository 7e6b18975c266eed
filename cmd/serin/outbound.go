// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/x509roots/fallback/bundle"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// outboundOptions are the flags that say where requests on behalf of users may go:
// hooks, notifications and metrics.
type outboundOptions struct {
	allowed, nodes       []string
	onlyHosts, onlyCIDRs []string
	denyHosts, denyCIDRs []string
	serviceAccount       string
}

func (o *outboundOptions) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.allowed, flagAllowedCIDRs, nil,
		"networks that hooks, notifications and metrics may reach although they are loopback, link-local, the node's, a cloud's metadata or the API server's")
	flags.StringSliceVar(&o.onlyHosts, flagOnlyHosts, nil,
		"hosts that hooks, notifications and metrics may reach, such as example.org, *.example.org or prometheus.monitoring:9090; with --outbound-only-cidrs those of either; default: all")
	flags.StringSliceVar(&o.onlyCIDRs, flagOnlyCIDRs, nil, "networks that hooks, notifications and metrics may reach; default: all")
	flags.StringSliceVar(&o.denyHosts, flagDeniedHosts, nil, "hosts that hooks, notifications and metrics may not reach")
	flags.StringSliceVar(&o.denyCIDRs, flagDeniedCIDRs, nil, "networks that hooks, notifications and metrics may not reach, whatever the other flags say")
	flags.StringSliceVar(&o.nodes, "node-addresses", nil, "addresses of the node that the manager runs on, which hooks, notifications and metrics may not reach")
	flags.StringVar(&o.serviceAccount, "service-account", "", "namespace/name of the ServiceAccount that the manager runs as, for messages that say what it may not do, and for webhooks to know its writes")
}

// The flags with lists of hosts and networks.
const (
	flagAllowedCIDRs = "outbound-allowed-cidrs"
	flagOnlyHosts    = "outbound-only-hosts"
	flagOnlyCIDRs    = "outbound-only-cidrs"
	flagDeniedHosts  = "outbound-denied-hosts"
	flagDeniedCIDRs  = "outbound-denied-cidrs"
)

// reach is where requests on behalf of users may go, and whom they trust there.
func (o *outboundOptions) reach(mgr manager.Manager, scope scopeOptions) (egress.Policy, *x509.CertPool, error) {
	policy, err := o.policy()
	if err != nil {
		return egress.Policy{}, nil, err
	}
	own, err := ownAddresses()
	if err != nil {
		return egress.Policy{}, nil, err
	}
	policy.Refused = append(policy.Refused, own...)
	if policy.APIServer, err = scope.apiServer(mgr); err != nil {
		return egress.Policy{}, nil, err
	}
	if scope.clusterObjects {
		policy.Nodes = notify.Nodes(mgr.GetClient())
	}
	roots, err := publicRoots()
	return policy, roots, err
}

// add has hooks and notifications sent by the leader.
func (o *outboundOptions) add(mgr manager.Manager, policy egress.Policy, roots *x509.CertPool) (*notify.Sender, error) {
	slots, err := newSlots("outbound", 32)
	if err != nil {
		return nil, err
	}
	// Secrets are read past the cache, one by one: nothing may list or watch them.
	sender := notify.New(mgr.GetAPIReader(), policy, clock.RealClock{}, notify.Options{
		UserAgent: "serin/" + build.Version(), ServiceAccount: o.serviceAccount, Roots: roots, Slots: slots,
	})
	if err := metrics.Registry.Register(sender); err != nil {
		return nil, fmt.Errorf("register the metrics of hooks and notifications: %w", err)
	}
	if err := mgr.Add(sender); err != nil {
		return nil, fmt.Errorf("add the sender of hooks and notifications: %w", err)
	}
	return sender, nil
}

// policy is what the flags alone say, and what the manager knows of itself.
func (o *outboundOptions) policy() (p egress.Policy, err error) {
	for _, list := range []struct {
		flag  string
		texts []string
		into  *[]netip.Prefix
	}{
		{flagAllowedCIDRs, o.allowed, &p.Allowed},
		{flagOnlyCIDRs, o.onlyCIDRs, &p.Only.Networks},
		{flagDeniedCIDRs, o.denyCIDRs, &p.Denied.Networks},
	} {
		if *list.into, err = egress.ParseNetworks(list.texts); err != nil {
			return p, fmt.Errorf("--%s: %w", list.flag, err)
		}
	}
	if p.Only.Hosts, err = egress.ParseHosts(o.onlyHosts); err != nil {
		return p, fmt.Errorf("--%s: %w", flagOnlyHosts, err)
	}
	if p.Denied.Hosts, err = egress.ParseHosts(o.denyHosts); err != nil {
		return p, fmt.Errorf("--%s: %w", flagDeniedHosts, err)
	}
	for _, text := range o.nodes {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return p, fmt.Errorf("--node-addresses: %q is not an IP address", text)
		}
		p.Refused = append(p.Refused, egress.OneAddress(address, "an address of a node"))
	}
	p.Ports = map[uint16]string{uint16(conf.AgentPort): "the operator's own at its proxies"}
	return p, nil
}

// ownAddresses are those of the pod that the manager runs in: what it serves there, it
// serves to others.
func ownAddresses() (own []egress.Network, err error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of the manager's own interfaces: %w", err)
	}
	for _, a := range addresses {
		if network, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, egress.OneAddress(network.Addr(), "an address of the operator"))
		}
	}
	return own, nil
}

// serverAddress is the address in the URL or the host and port that the API server
// is called by; none when there is a name.
func serverAddress(host string) []netip.Addr {
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	if both, err := netip.ParseAddrPort(host); err == nil {
		return []netip.Addr{both.Addr()}
	}
	u := url.URL{Host: host}
	address, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil
	}
	return []netip.Addr{address}
}

// publicRoots are the certificate authorities of the system, which SSL_CERT_FILE
// and SSL_CERT_DIR may name, or else Mozilla's: the image brings none.
func publicRoots() (*x509.CertPool, error) {
	empty := x509.NewCertPool()
	if system, err := x509.SystemCertPool(); err == nil && !system.Equal(empty) {
		return system, nil
	}
	roots := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read the built-in certificate authorities: %w", err)
		}
		if root.Constraint == nil {
			roots.AddCert(certificate)
			continue
		}
		roots.AddCertWithConstraint(certificate, root.Constraint)
	}
	return roots, nil
}
