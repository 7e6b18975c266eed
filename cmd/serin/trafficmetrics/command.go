// SPDX-License-Identifier: Apache-2.0

package trafficmetrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/certificate"
	"github.com/serin-dev/serin/metricsapi/aggregate"
	"github.com/serin-dev/serin/metricsapi/inventory"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/metricsapi/server"
)

// sourceParts are what a source of traffic can be made of.
type sourceParts struct {
	// Cluster is the configuration of its API, without a limit of requests.
	Cluster *rest.Config
	// Inventory of the cluster. It may not have been read yet.
	Inventory observe.Inventory
	Clock     clock.WithTicker
	// Settings are the flags of the sources.
	Settings sourceOptions
}

// sources make the sources of traffic, by the value of --source. A new one is one more
// line. A source that measures does so until ctx ends.
var sources = map[string]func(ctx context.Context, parts sourceParts) (observe.Source, error){
	noSource:     func(context.Context, sourceParts) (observe.Source, error) { return nothing{}, nil },
	"scrape":     newScrapeSource,
	"prometheus": newPrometheusSource,
}

// noSource is the source of a server without a configured source.
const noSource = "none"

// nothing knows of no traffic, and says so.
type nothing struct{}

// Observe always fails.
func (nothing) Observe(context.Context, string) (observe.Snapshot, error) {
	return observe.Snapshot{}, &observe.UnavailableError{Message: "no source of traffic is configured; start serin metrics with another --source"}
}

// options are the flags of serin metrics.
type options struct {
	address, source     string
	namespace, service  string
	apiService, secret  string
	certFile, keyFile   string
	timeout, leaveAfter time.Duration
	settings            sourceOptions
}

// NewCommand makes serin metrics.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Serve TrafficMetrics as a part of the Kubernetes API",
		Long: `Serve TrafficMetrics, metrics.smi-spec.io/v1alpha1, as a part of the Kubernetes API.

The kube-apiserver passes requests on to this server, which asks it who may see what.
Several replicas share one certificate, which they make and renew themselves.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd.Flags())
	for _, required := range []string{"namespace", "service"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is bound above
		}
	}
	cmd.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
	cmd.MarkFlagsMutuallyExclusive("tls-cert-file", "certificate-secret")
	cmd.MarkFlagsOneRequired("tls-cert-file", "certificate-secret")
	return cmd
}

func (o *options) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "bind-address", ":8443", "address of the API and of the probes")
	flags.StringVar(&o.source, "source", noSource, "where traffic is measured: "+strings.Join(slices.Sorted(maps.Keys(sources)), ", "))
	o.settings.bind(flags)
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the Service that leads to this server")
	flags.StringVar(&o.service, "service", "", "name of the Service that leads to this server")
	flags.StringVar(&o.apiService, "api-service", metricsv1.GroupVersion.Version+"."+metricsv1.GroupVersion.Group,
		"APIService whose caBundle the server keeps up to date, if it leads to the Service; with --certificate-secret")
	flags.StringVar(&o.secret, "certificate-secret", "", "Secret, in the namespace, for the certificate that all replicas share; it must exist and may be empty")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "file of a certificate, instead of --certificate-secret; it is read again when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "file of the certificate's private key")
	flags.DurationVar(&o.timeout, "request-timeout", 30*time.Second, "how long an answer may take")
	flags.DurationVar(&o.leaveAfter, "shutdown-delay", 5*time.Second, "how long to go on serving after a request to stop")
}

func (o *options) run(ctx context.Context) error {
	build, known := sources[o.source]
	if !known {
		return fmt.Errorf("--source: %q is not one of %s", o.source, strings.Join(slices.Sorted(maps.Keys(sources)), ", "))
	}
	clients, err := newClients()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	// What the server needs runs until its last request is answered.
	parts, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	wall := clock.RealClock{}
	watcher := inventory.New(clients.inventory(ctx, wall))
	running.Go(func() { watcher.Run(parts) })
	source, err := build(parts, sourceParts{Cluster: clients.config, Inventory: watcher, Clock: wall, Settings: o.settings})
	if err != nil {
		return fmt.Errorf("--source=%s: %w", o.source, err)
	}
	shown, ready, err := o.certificate(ctx, parts, &running, clients)
	if err != nil {
		return err
	}
	legacyregistry.RawMustRegister(certificate.Expiry("metrics", shown)) // what the server serves at /metrics
	s, err := server.New(server.Options{
		Listener: listener, Certificate: shown, Objects: watcher, Access: server.Delegated(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)),
		Provider: aggregate.NewProvider(source, watcher, wall, aggregate.Options{}),
		Checks:   []healthz.HealthChecker{check("inventory", watcher.Ready), check("certificate", ready)},
		Timeout:  o.timeout, Leave: o.leaveAfter,
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// certificate returns the certificate to show, as soon as there is one, and a check of
// whether clients trust it.
func (o *options) certificate(ctx, parts context.Context, running *sync.WaitGroup, clients clients) (dynamiccertificates.CertKeyContentProvider, func() error, error) {
	if o.secret == "" {
		provided, err := dynamiccertificates.NewDynamicServingContentFromFiles("provided", o.certFile, o.keyFile)
		if err != nil {
			return nil, nil, fmt.Errorf("--tls-cert-file: %w", err)
		}
		return provided, func() error { return nil }, nil
	}
	service := types.NamespacedName{Namespace: o.namespace, Name: o.service}
	rotator := certificate.NewRotator(certificate.Options{
		Name: "serin-metrics", Hosts: []string{service.Name + "." + service.Namespace + ".svc"},
		Store:     certificate.Secret{Client: clients.kubernetes.CoreV1().Secrets(o.namespace), Name: o.secret},
		Announcer: certificate.APIService{Client: clients.dynamic, Name: o.apiService, Service: service},
		Clock:     clock.RealClock{}, Log: ctrl.LoggerFrom(ctx).WithName("certificate"),
	})
	begun := make(chan struct{})
	running.Go(func() { rotator.Run(parts, func() { close(begun) }) })
	select {
	case <-begun:
		return rotator, rotator.Ready, nil
	case <-ctx.Done():
		return nil, nil, errors.New("stopped before there was a certificate")
	}
}

// check is a check of readiness.
func check(name string, ready func() error) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error { return ready() })
}
