// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/certificate"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/metricsapi/aggregate"
	"github.com/serin-dev/serin/metricsapi/inventory"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/metricsapi/server"
)

const (
	metricsService = "serin-metrics"
	apiService     = "v1alpha1.metrics.smi-spec.io"
)

// seen is a source of traffic that tests decide about.
type seen struct {
	mu       sync.Mutex
	snapshot observe.Snapshot
	err      error
}

// Observe returns what was set last.
func (s *seen) Observe(context.Context, string) (observe.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot, s.err
}

func (s *seen) set(snapshot observe.Snapshot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot, s.err = snapshot, err
}

// fresh asks a source anew for each request.
type fresh struct {
	source    observe.Source
	inventory observe.Inventory
}

func (f fresh) provider() observe.Provider {
	return aggregate.NewProvider(f.source, f.inventory, clock.RealClock{}, aggregate.Options{})
}

func (f fresh) Metrics(ctx context.Context, r observe.Request) (observe.Answer, error) {
	return f.provider().Metrics(ctx, r)
}

func (f fresh) Edges(ctx context.Context, r observe.Request) (observe.Answer, error) {
	return f.provider().Edges(ctx, r)
}

// replica is one metrics server behind the API server.
type replica struct {
	address *net.TCPAddr
	stop    func()
}

// ownAddress is an address of this machine that endpoints can have: a loopback one they can't.
func ownAddress(t testing.TB) net.IP {
	t.Helper()
	address, err := globalAddress()
	if err != nil {
		t.Fatal(err)
	}
	if address == nil {
		testenv.Missing(t, "this machine has no IPv4 address but loopback ones, which endpoints can't have", "give it one")
	}
	return address
}

// globalAddress is nil where there is none.
func globalAddress() (net.IP, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.To4(), nil
		}
	}
	return nil, nil
}

// kubeconfigOf writes a configuration into a file.
func kubeconfigOf(t testing.TB, config *rest.Config, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	c.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// serveTraffic starts a metrics server as the chart's service account, and returns when
// it is ready. It ends with the test, or when it is stopped.
func serveTraffic(t *testing.T, source observe.Source) *replica {
	t.Helper()
	config, err := plane.ConfigFor("system:serviceaccount:"+operatorSpace+":"+metricsService, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	core, meta, other := kubernetes.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	watcher := inventory.New(inventory.Options{
		Kubernetes: core, Metadata: meta, Dynamic: other, Discovery: core.Discovery(), Clock: clock.RealClock{}, Log: klog.Background(),
	})
	running.Go(func() { watcher.Run(ctx) })
	service := types.NamespacedName{Namespace: operatorSpace, Name: metricsService}
	keeper := certificate.NewRotator(certificate.Options{
		Hosts:     []string{metricsService + "." + operatorSpace + ".svc"},
		Store:     certificate.Secret{Client: core.CoreV1().Secrets(operatorSpace), Name: metricsService},
		Announcer: certificate.APIService{Client: other, Name: apiService, Service: service},
		Clock:     clock.RealClock{}, Log: klog.Background(),
	})
	begun := make(chan struct{})
	running.Go(func() { keeper.Run(ctx, func() { close(begun) }) })
	<-begun
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(ownAddress(t).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{
		Listener: listener, Certificate: keeper, Objects: watcher, Provider: fresh{source, watcher},
		Access: server.Delegated(kubeconfigOf(t, config, "")),
	})
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("the metrics server: %v", err)
		}
	})
	eventually(t, "the metrics server is ready", func() error {
		if err := watcher.Ready(); err != nil {
			return err
		}
		return keeper.Ready()
	})
	return &replica{listener.Addr().(*net.TCPAddr), stop}
}

// installTraffic creates what the chart has for the metrics servers but their pods, for
// the time of a test. The Service selects nothing: its endpoints are made by hand.
func installTraffic(t testing.TB) {
	t.Helper()
	for _, o := range kinds(chart, "Secret", "Service", "APIService") {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%T", o)
		}
		unstructured.RemoveNestedField(u.Object, "spec", "selector")
		createForTest(t, o)
	}
}

func createForTest(t testing.TB, o client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), o); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// join makes a replica an endpoint of the Service.
func (r *replica) join(t testing.TB) {
	t.Helper()
	createForTest(t, r.endpoints(metricsService))
}

// endpoints make a replica the endpoint of a Service.
func (r *replica) endpoints(service string) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{r.address.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(r.address.Port)), Protocol: new(corev1.ProtocolTCP)}},
	}
	e.Namespace, e.GenerateName = operatorSpace, service+"-"
	e.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return e
}

// serving waits until the API server serves TrafficMetrics.
func serving(t testing.TB) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(plane.Config)
	eventually(t, "TrafficMetrics are served", func() error {
		return core.RESTClient().Get().AbsPath("/apis/metrics.smi-spec.io/v1alpha1").Do(t.Context()).Error()
	})
}

// userConfig is a kubeconfig of a user who has no rights but those of the groups.
func userConfig(t *testing.T, name string) string {
	t.Helper()
	config, err := plane.ConfigFor(name, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, config, "")
}

// readFile is a file of the repository.
func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// rawClient asks for paths as the administrator.
func rawClient(t testing.TB) rest.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(plane.Config).RESTClient()
}
