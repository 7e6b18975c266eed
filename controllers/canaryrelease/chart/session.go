// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// manager is Helm's own field manager. What an adoption writes has to be Helm's, or
// the next upgrade by server-side apply would meet the fields of another manager.
const manager = "helm"

func init() { kube.ManagedFieldsManager = manager }

// session is one call: a connection as the ServiceAccount of one namespace.
type session struct {
	namespace string
	client    kubernetes.Interface
	// labels lists the records of a release without their contents.
	labels  releases.Lister
	lookups engine.ClientProvider
	// kubeClient and getter are what Helm writes with.
	kubeClient   kube.Interface
	getter       action.RESTClientGetter
	capabilities func() (*common.Capabilities, error)
	trouble      func() error
}

// opener makes the session of a call; readOnly ones can't write.
type opener func(ctx context.Context, namespace string, readOnly bool) (*session, error)

// connectAs connects to what leads to the API server as a ServiceAccount of the namespace.
func connectAs(config *rest.Config, account string) opener {
	return func(ctx context.Context, namespace string, readOnly bool) (*session, error) {
		g := &releases.Guard{Context: ctx, ReadOnly: readOnly, Account: account + " of namespace " + namespace}
		c := rest.CopyConfig(config)
		c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
		c.Wrap(g.Through)
		return connect(c, namespace, g.Trouble)
	}
}

func connect(c *rest.Config, namespace string, trouble func() error) (*session, error) {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	meta, err := metadata.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	g := &getter{config: c, namespace: namespace, discovery: memory.NewMemCacheClient(client.Discovery())}
	helm := kube.New(g)
	helm.Namespace = namespace
	helm.SetLogger(slog.DiscardHandler)
	return &session{
		namespace: namespace, client: client, kubeClient: helm, getter: g, trouble: trouble,
		labels:       releases.Records(meta, namespace),
		lookups:      &lookups{client: dynamicClient, getter: g},
		capabilities: g.capabilities,
	}, nil
}

// configuration is what Helm's actions work with. Records are written by way of
// secrets, which may refuse some.
func (s *session) configuration(secrets driver.Driver) (*action.Configuration, error) {
	capabilities, err := s.capabilities()
	if err != nil {
		return nil, err
	}
	c := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	c.KubeClient, c.RESTClientGetter, c.Capabilities = s.kubeClient, s.getter, capabilities
	c.Releases = storage.Init(secrets)
	c.Releases.SetLogger(slog.DiscardHandler)
	c.HookOutputFunc = func(_, _, _ string) io.Writer { return io.Discard }
	return c, nil
}

// getter is what Helm makes its clients of. It keeps nothing on disk.
type getter struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewDeferredDiscoveryRESTMapper(g.discovery), nil
}

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}

func (g *getter) capabilities() (*common.Capabilities, error) {
	version, err := g.discovery.ServerVersion()
	if err != nil {
		return nil, releases.FailureError("the API server does not report its version")
	}
	versions, err := action.GetVersionSet(g.discovery)
	if err != nil {
		return nil, releases.FailureError("the API server does not report what it serves")
	}
	return &common.Capabilities{
		APIVersions: versions, HelmVersion: common.DefaultCapabilities.HelmVersion,
		KubeVersion: common.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
	}, nil
}

// lookups serves the function lookup of templates. Helm's own would write what it
// can't find to the log.
type lookups struct {
	client dynamic.Interface
	getter *getter
}

func (l *lookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	mapper, err := l.getter.ToRESTMapper()
	if err != nil {
		return nil, false, err
	}
	kinds := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := mapper.RESTMapping(kinds.GroupKind(), kinds.Version)
	if err != nil {
		return nil, false, err
	}
	return l.client.Resource(mapping.Resource), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
