// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic/nginx"
)

// accessOptions are the flags of serin manager that say what NetworkPolicies of proxies allow
// beside the traffic of the app.
type accessOptions struct {
	readers    string
	restricted []string
	networks   []string
	ports      []int32
}

func (o *accessOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.readers, "proxy-readers", "", "who reads the counters and confirmations of proxies where NetworkPolicies isolate them: a list of peers as a NetworkPolicy writes them, in YAML or JSON; default: every pod")
	flags.StringSliceVar(&o.restricted, "restrict-proxy-readers", nil, "namespace in which only --proxy-readers read from proxies, whatever NetworkPolicies it has, or * for all; can be repeated")
	flags.StringSliceVar(&o.networks, "api-server-network", nil, "network of the API server, such as 10.0.0.1/32, for proxies whose egress NetworkPolicies isolate; can be repeated; default: any address")
	flags.Int32SliceVar(&o.ports, "api-server-port", nil, "port of the API server, of its Service and of its pods, for the same; can be repeated; default: 443 and 6443")
}

func (o *accessOptions) options() (nginx.Access, error) {
	out := nginx.Access{Restricted: o.restricted, APIServerPorts: o.ports}
	if err := yaml.UnmarshalStrict([]byte(o.readers), &out.Readers); err != nil {
		return out, fmt.Errorf("--proxy-readers: %q is not a list of peers of a NetworkPolicy: %w", o.readers, err)
	}
	for _, network := range o.networks {
		if _, err := netip.ParsePrefix(network); err != nil {
			return out, fmt.Errorf("--api-server-network: %q is not a network; write it like 10.0.0.1/32", network)
		}
		out.APIServer = append(out.APIServer, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: network}})
	}
	for _, port := range o.ports {
		if port < 1 || port > 65535 {
			return out, fmt.Errorf("--api-server-port: %d must be between 1 and 65535", port)
		}
	}
	return out, nil
}
