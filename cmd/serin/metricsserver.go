// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// ownMetricsOptions are the flags that say how the manager serves its own metrics.
type ownMetricsOptions struct {
	address, certificates string
	secure                bool
}

func (o *ownMetricsOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "metrics-bind-address", ":8080", "address of the operator's metrics; 0 for none")
	flags.BoolVar(&o.secure, "metrics-secure", false, "serve metrics over TLS, to bearers of a token that may get /metrics; the manager needs the right to create TokenReviews and SubjectAccessReviews")
	flags.StringVar(&o.certificates, "metrics-cert-dir", "", "folder with tls.crt and tls.key for --metrics-secure, which are read again when they change; default: a certificate that the manager makes at each start")
}

// options are those of the server.
func (o *ownMetricsOptions) options() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.address}
	if o.secure {
		options.SecureServing, options.CertDir = true, o.certificates
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
