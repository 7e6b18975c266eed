// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/metricsapi/server/openapi"
)

// Options of a server.
type Options struct {
	// Listener that requests come in at.
	Listener net.Listener
	// Certificate that the server shows. It may change while the server runs.
	Certificate dynamiccertificates.CertKeyContentProvider
	// Provider of the numbers.
	Provider observe.Provider
	// Objects of the cluster.
	Objects Objects
	// Access says who asks, and whether they may.
	Access Access
	// Checks of readiness, besides those that the server adds.
	Checks []healthz.HealthChecker
	// Timeout of a request. Default 30 s.
	Timeout time.Duration
	// Leave is how long requests are served after a stop was asked for, while clients
	// learn of it.
	Leave time.Duration
}

// defaultTimeout is below the minute that the kube-apiserver waits for an answer.
const defaultTimeout = 30 * time.Second

// Server serves the TrafficMetrics API.
type Server struct {
	generic *genericapiserver.GenericAPIServer
}

// New makes a server. An error says which option is wrong, or that the kube-apiserver
// did not tell by what its requests are known.
func New(o Options) (*Server, error) {
	config, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	if err := o.Access(config); err != nil {
		return nil, err
	}
	complete := config.Complete(nil)
	generic, err := complete.New("serin-metrics", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(metricsv1.GroupVersion.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.NegotiatedSerializer = textual{codecs}
	group.VersionedResourcesStorageMap[metricsv1.GroupVersion.Version] = storages(o.Provider, o.Objects)
	if err := generic.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("serve %s: %w", metricsv1.GroupVersion, err)
	}
	return &Server{generic: generic}, nil
}

// Run serves until ctx ends and the requests of that time are answered.
func (s *Server) Run(ctx context.Context) error { return s.generic.PrepareRun().RunWithContext(ctx) }

// storages are the resources with their sub-resources.
func storages(provider observe.Provider, objects Objects) map[string]rest.Storage {
	all := map[string]rest.Storage{}
	for _, kind := range observe.Kinds {
		r := &resource{kind: kind, provider: provider, objects: objects}
		e := edgesOf{tables{edgeColumns}, r}
		if kind == observe.TrafficSplits {
			r.of = backendColumns
			e.of = append(slices.Clone(backendColumns), edgeColumns...)
		}
		all[kind.Resource] = r
		all[kind.Resource+"/"+edges] = e
	}
	return all
}

// newConfig is everything but who may ask.
func newConfig(o Options) (*genericapiserver.Config, error) {
	if o.Listener == nil || o.Certificate == nil || o.Provider == nil || o.Objects == nil || o.Access == nil {
		return nil, errors.New("a server needs a Listener, a Certificate, a Provider, Objects and Access")
	}
	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.EnableProfiling = false
	config.RequestTimeout = o.Timeout
	if config.RequestTimeout == 0 {
		config.RequestTimeout = defaultTimeout
	}
	config.ShutdownDelayDuration = o.Leave
	config.RequestInfoResolver = requestInfo{genericapiserver.NewRequestInfoResolver(config)}
	config.ReadyzChecks = append(config.ReadyzChecks, o.Checks...)
	namer := apiopenapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.Definitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.Definitions, namer)
	//nolint:staticcheck // the library fills this field, and refuses the newer one together with it
	config.OpenAPIConfig.GetOperationIDAndTags, config.OpenAPIV3Config.GetOperationIDAndTags = operation, operation
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = title, title
	serving := genericoptions.NewSecureServingOptions()
	serving.Listener = o.Listener
	if err := serving.WithLoopback().ApplyToConfig(config); err != nil {
		return nil, fmt.Errorf("serve TLS: %w", err)
	}
	config.SecureServing.Cert = o.Certificate
	return config, nil
}

const title = "TrafficMetrics"

// Access says who asks, and whether they may.
type Access func(*genericapiserver.Config) error

// Delegated asks the kube-apiserver. It knows a request of the kube-apiserver's by the
// client certificate, and lets everybody else show a token or certificate of their own;
// headers that name a user count for nothing without that certificate. Whether a user
// may is asked for each request, also for administrators; answers are kept for ten
// seconds. The file is a kubeconfig, or "" for the one of the pod.
func Delegated(kubeconfig string) Access {
	return func(config *genericapiserver.Config) error {
		authentication := genericoptions.NewDelegatingAuthenticationOptions()
		authentication.RemoteKubeConfigFile = kubeconfig
		if err := authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
			return fmt.Errorf("ask the kube-apiserver by what its requests are known: %w", err)
		}
		config.Authentication.Authenticator = refuseAnonymous(config.Authentication.Authenticator)
		authorization := genericoptions.NewDelegatingAuthorizationOptions()
		authorization.RemoteKubeConfigFile = kubeconfig
		authorization.AlwaysAllowGroups, authorization.AlwaysAllowPaths = nil, probes
		if err := authorization.ApplyTo(&config.Authorization); err != nil {
			return fmt.Errorf("reach the kube-apiserver for questions about rights: %w", err)
		}
		return nil
	}
}

// probes are the paths that the kubelet asks without a name.
var probes = []string{"/healthz", "/livez", "/readyz"}

// refuseAnonymous lets no anonymous user ask for more than whether the server is
// well, whatever the cluster gives to anonymous users.
func refuseAnonymous(inner authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := inner.AuthenticateRequest(req)
		if ok && response.User.GetName() == user.Anonymous && !slices.Contains(probes, req.URL.Path) {
			return nil, false, nil
		}
		return response, ok, err
	})
}
