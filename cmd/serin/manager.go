// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/serin-dev/serin/analysis"
	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/cmd/serin/connect"
	"github.com/serin-dev/serin/cmd/serin/tracing"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/freeze"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/rollout"
	"github.com/serin-dev/serin/controllers/trafficsplit"
	"github.com/serin-dev/serin/controllers/trafficsplit/reports"
	"github.com/serin-dev/serin/controllers/trafficsplit/served"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/gatewayapi"
	"github.com/serin-dev/serin/traffic/istio"
	"github.com/serin-dev/serin/traffic/nginx"
	"github.com/serin-dev/serin/traffic/selector"
	"github.com/serin-dev/serin/traffic/smi"
)

// managerOptions are the flags of serin manager.
type managerOptions struct {
	probeAddress              string
	metrics                   ownMetricsOptions
	leaderElect               bool
	leaderNamespace, leaderID string
	scope                     scopeOptions
	proxyImage                string
	proxyPods                 proxyPodOptions
	defaultRouter             string
	admission                 admissionOptions
	istioSettle, smiSettle    time.Duration
	gatewaySettle             time.Duration
	window                    time.Duration
	workers                   int
	configurationNamespaces   []string
	secretNamespaces          []string
	outbound                  outboundOptions
	canaryServiceAccount      string
	tracing                   bool
	// splits is how the cluster serves TrafficSplits.
	splits traffic.Served
	// traces is nil while tracing is off.
	traces *tracing.Traces
}

func newManagerCommand() *cobra.Command {
	var o managerOptions
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers of Rollouts, TrafficSplits and CanaryReleases",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd.Flags())
	if err := cmd.MarkFlagRequired("proxy-image"); err != nil {
		panic(err) // the flag is bound in the line above
	}
	return cmd
}

func (o *managerOptions) bind(flags *pflag.FlagSet) {
	o.metrics.bind(flags)
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of the probes")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "act only as the holder of a lease, so that several replicas can run")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "namespace of the lease; the pod's own when empty")
	flags.StringVar(&o.leaderID, "leader-election-id", "manager.serin.dev", "name of the lease, which no two installations may share")
	flags.StringVar(&o.proxyImage, "proxy-image", "", "image that the nginx router runs its proxies with")
	flags.StringVar(&o.defaultRouter, "default-router", string(v1alpha1.RouterNginx), "router of Rollouts and TrafficSplits that name none: nginx, gatewayAPI, istio or smi")
	flags.DurationVar(&o.istioSettle, "istio-settle", istio.DefaultSettle, "how long to wait, after a VirtualService was changed, until Istio's proxies are taken to apply it")
	flags.DurationVar(&o.gatewaySettle, "gateway-settle", gatewayapi.DefaultSettle, "how long to wait, after a gateway or mesh accepted a route of the Gateway API, until its proxies are taken to apply it")
	flags.DurationVar(&o.smiSettle, "smi-settle", smi.DefaultSettle, "how long to wait, after a TrafficSplit with the router smi was changed, until the mesh is taken to apply it")
	flags.StringSliceVar(&o.configurationNamespaces, "configuration-namespace", nil, "namespace in which Rollouts may make the contents of ConfigMaps part of a version; can be repeated; default: all that are served")
	flags.StringSliceVar(&o.secretNamespaces, "secret-namespace", nil, "namespace in which Rollouts may make the contents of Secrets part of a version; can be repeated")
	flags.StringVar(&o.canaryServiceAccount, "canary-service-account", "",
		"name of the ServiceAccount, of the namespace of each CanaryRelease, that Helm is called as; without it, CanaryReleases are not served")
	flags.DurationVar(&o.window, "window", analysis.WindowLength, "time between two readings of the proxies' counters, which is the length of a window of analysis; 1s to 10s")
	flags.IntVar(&o.workers, "workers", 8, "number of Rollouts that are reconciled at once")
	flags.BoolVar(&o.tracing, "tracing", false, "export traces of reconciles and requests by OTLP, as environment variables configure it (OTEL_EXPORTER_OTLP_ENDPOINT and others)")
	o.admission.bind(flags)
	o.scope.bind(flags)
	o.proxyPods.bind(flags)
	o.outbound.bind(flags)
}

// newScheme has TrafficSplits in the version that the cluster serves.
func newScheme(splits traffic.Served) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, splitv1.AddVersionToScheme(splits.Version), specsv1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

func (o *managerOptions) run(ctx context.Context) error {
	if err := analysis.ValidateWindowLength(o.window); err != nil {
		return fmt.Errorf("--window: %w", err)
	}
	if err := errors.Join(o.scope.check("configuration-namespace", o.configurationNamespaces), o.scope.check("secret-namespace", o.secretNamespaces)); err != nil {
		return err
	}
	stop, err := o.startTraces(ctx)
	if err != nil {
		return err
	}
	defer stop()
	restConfig, err := connect.Config("serin-manager")
	if err != nil {
		return err
	}
	o.traces.API(restConfig)
	cluster, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("ask what the cluster serves: %w", err)
	}
	if o.splits, err = served.Discover(cluster); err != nil {
		return err
	}
	if err := checkKinds(ctx, cluster, build.Version()); err != nil {
		return err
	}
	mgr, err := o.newManager(ctx, restConfig)
	if err != nil {
		return err
	}
	if err := o.admission.serve(ctx, mgr, o.outbound.serviceAccount); err != nil {
		return fmt.Errorf("set up the webhooks: %w", err)
	}
	if err := o.addControllers(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addControllers adds everything that the manager runs.
func (o *managerOptions) addControllers(ctx context.Context, mgr manager.Manager) error {
	slots, err := newSlots("confirmations", 64)
	if err != nil {
		return err
	}
	confirmed := reports.New(reports.Options{Version: build.Version(), Source: reports.NewHTTP(), Clock: clock.RealClock{}, Slots: slots})
	if err := mgr.Add(confirmed); err != nil {
		return err
	}
	routers, err := o.routers(ctx, mgr, confirmed)
	if err != nil {
		return err
	}
	if err := o.addTrafficSplits(ctx, mgr, routers, confirmed); err != nil {
		return fmt.Errorf("set up the TrafficSplit controller: %w", err)
	}
	if err := o.addRollouts(ctx, mgr, routers); err != nil {
		return fmt.Errorf("set up the Rollout controller: %w", err)
	}
	if len(o.scope.namespaces) == 0 { // a Freeze is the cluster's
		if err := freeze.New(mgr.GetClient(), clock.RealClock{}).SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the Freeze controller: %w", err)
		}
	}
	if err := o.addCanaryReleases(mgr); err != nil {
		return fmt.Errorf("set up the CanaryRelease controller: %w", err)
	}
	return nil
}

func (o *managerOptions) newManager(ctx context.Context, restConfig *rest.Config) (manager.Manager, error) {
	byObject := trafficsplit.CacheOptions()
	maps.Copy(byObject, served.CacheOptions(o.splits))
	maps.Copy(byObject, rollout.CacheOptions())
	maps.Copy(byObject, admission.CacheOptions(o.admission.webhooks))
	caches, err := newCaches(restConfig)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: newScheme(o.splits), Logger: ctrl.LoggerFrom(ctx),
		Metrics:                o.metrics.options(),
		HealthProbeBindAddress: o.probeAddress,
		BaseContext:            func() context.Context { return o.traces.Into(context.Background()) },
		LeaderElection:         o.leaderElect, LeaderElectionID: o.leaderID,
		LeaderElectionNamespace:       o.leaderNamespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{ByObject: byObject, DefaultNamespaces: o.scope.watched(), DefaultTransform: cache.TransformStripManagedFields()},
		// What was decided from a cache that has not seen the operator's own last write
		// would be decided about a world that is gone: see the weights of a split.
		Client:   client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		NewCache: bounds.NewCache(ctx),
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.New(config, options)
			if err != nil {
				return nil, err
			}
			return bounds.NewClient(c, caches), nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, errors.Join(addHealth(mgr, caches), addRelease(mgr, clock.RealClock{}))
}

// routers are the routers that this operator offers. A new one is one more line.
func (o *managerOptions) routers(ctx context.Context, mgr manager.Manager, confirmed traffic.ProxyReports) ([]traffic.Router, error) {
	options, err := o.proxyPods.options(o.proxyImage, measuresPods(mgr.GetRESTMapper()))
	if err != nil {
		return nil, err
	}
	options.Reports, options.AppPods, options.Namespaces = confirmed, mgr.GetAPIReader(), o.scope.clusterObjects
	options.WithoutNodes = len(o.scope.namespaces) > 0
	n, err := nginx.New(mgr.GetClient(), options)
	if err != nil {
		return nil, fmt.Errorf("set up the nginx router: %w", err)
	}
	mesh, err := istio.New(ctx, istio.Options{
		Cache: mgr.GetCache(), Client: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), Default: o.defaultRouter == istio.Name, Settle: o.istioSettle,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the Istio router: %w", err)
	}
	gateway, err := o.gatewayRouter(ctx, mgr)
	if err != nil {
		return nil, fmt.Errorf("set up the Gateway API router: %w", err)
	}
	return []traffic.Router{n, gateway, mesh, smi.New(o.smiSettle), selector.New(0)}, nil
}

func (o *managerOptions) addTrafficSplits(ctx context.Context, mgr manager.Manager, routers []traffic.Router, confirmed *reports.Reports) error {
	return trafficsplit.SetupWithManager(ctx, mgr, trafficsplit.Options{
		Routers: routers, DefaultRouter: o.defaultRouter, Served: o.splits, PodZones: len(o.scope.namespaces) > 0,
		Recorder: mgr.GetEventRecorder(traffic.FieldManager), Clock: clock.RealClock{}, Changed: confirmed.Changed(),
	})
}

func (o *managerOptions) addRollouts(ctx context.Context, mgr manager.Manager, routers []traffic.Router) error {
	var names []v1alpha1.RouterName
	for _, r := range routers {
		names = append(names, v1alpha1.RouterName(r.Name()))
	}
	mutations, err := o.admission.found(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if !o.scope.clusterObjects {
		mutations = rollout.Admission{} // the policies belong to no namespace
	}
	logMode(ctx, mutations)
	measured, err := o.addMeasurements(mgr, routers)
	if err != nil {
		return fmt.Errorf("add the measurement: %w", err)
	}
	policy, roots, err := o.outbound.reach(mgr, o.scope)
	if err != nil {
		return err
	}
	outbox, err := o.outbound.add(mgr, policy, roots)
	if err != nil {
		return err
	}
	named, err := o.addUserMetrics(mgr, measured, policy, roots)
	if err != nil {
		return err
	}
	direct, err := uncached(mgr)
	if err != nil {
		return err
	}
	r := rollout.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManager), rollout.Options{
		DefaultRouter: v1alpha1.RouterName(o.defaultRouter), Routers: names,
		Drain: map[v1alpha1.RouterName]time.Duration{smi.Name: o.smiSettle}, Served: o.splits, Measurements: measured, Metrics: named, Outbox: outbox,
		TrafficMetrics: servesTrafficMetrics(mgr.GetRESTMapper()),
		Live:           mgr.GetAPIReader(),
		Recordings:     direct,
		Clock:          clock.RealClock{}, Admission: mutations, Concurrency: o.workers,
		CanaryReleases: o.canaryServiceAccount != "", NamespacedOnly: !o.scope.clusterObjects,
		Configuration: rollout.ConfigurationOptions{
			Namespaces: o.configurationNamespaces, SecretNamespaces: o.secretNamespaces, Reader: mgr.GetAPIReader(),
		},
	})
	if err := metrics.Registry.Register(r.Metrics()); err != nil {
		return fmt.Errorf("register the metrics of Rollouts: %w", err)
	}
	return r.SetupWithManager(ctx, mgr, measured.Changed())
}
