// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/rollout"
)

// webhooksName is what all objects of the webhooks are called.
const webhooksName = release + "-webhooks"

// webhookObjects are what the chart has for webhooks, for clusters without policies.
func webhookObjects(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	objects, err := renderChart(ctx, "--set", "admission.mode=webhook")
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		switch {
		case o.GetName() == webhooksName:
			found[o.GetKind()] = o
		case o.GetName() == release+"-admission": // the policies' role has that name
			o.SetName(webhooksName)
			if o.GetKind() == "ClusterRoleBinding" {
				if err := unstructured.SetNestedField(o.Object, webhooksName, "roleRef", "name"); err != nil {
					return nil, err
				}
			}
			found[o.GetKind()] = o
		}
	}
	// Its endpoints are made by hand.
	unstructured.RemoveNestedField(found["Service"].Object, "spec", "selector")
	return found, nil
}

// webhookConfiguration is the chart's, for the namespaces that a selector of each webhook finds.
func webhookConfiguration(objects map[string]*unstructured.Unstructured, selector func(webhook string) *metav1.LabelSelector) (*admissionv1.MutatingWebhookConfiguration, error) {
	c := &admissionv1.MutatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects["MutatingWebhookConfiguration"].Object, c); err != nil {
		return nil, err
	}
	for i := range c.Webhooks {
		c.Webhooks[i].NamespaceSelector = selector(c.Webhooks[i].Name)
	}
	return c, nil
}

// installWebhooks creates what the chart has for webhooks, and runs two managers that serve
// them under the rights of its service account, until the process ends. One of them leads.
// They are in force in namespaces with the value byWebhook of a label.
func installWebhooks(ctx context.Context) error {
	address, err := globalAddress()
	if err != nil || address == nil {
		return err // tests that need them say what is missing
	}
	objects, err := webhookObjects(ctx)
	if err != nil {
		return err
	}
	configuration, err := webhookConfiguration(objects, func(webhook string) *metav1.LabelSelector {
		label := labelGuarded
		if strings.HasPrefix(webhook, "sign.") {
			label = labelDecisions
		}
		return &metav1.LabelSelector{MatchLabels: map[string]string{label: byWebhook}}
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Service"} {
		if err := admin.Create(ctx, objects[kind]); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if err := admin.Create(ctx, configuration); err != nil {
		return err
	}
	account, err := accountConfig()
	if err != nil {
		return err
	}
	for i := range 2 {
		mgr, slice, err := newWebhookManager(ctx, rest.CopyConfig(account), address, types.NamespacedName{Namespace: operatorSpace, Name: webhooksName})
		if err != nil {
			return err
		}
		slice.Name = fmt.Sprintf("%s-%d", webhooksName, i)
		if err := publish(ctx, slice); err != nil {
			return err
		}
		go func() {
			if err := mgr.Start(ctx); err != nil {
				panic(err)
			}
		}()
	}
	return nil
}

// newWebhookManager makes a manager that serves nothing but webhooks, with what makes it an
// endpoint of their Service. Objects of theirs have the name of the Service.
func newWebhookManager(ctx context.Context, cfg *rest.Config, address net.IP, service types.NamespacedName) (ctrl.Manager, *discoveryv1.EndpointSlice, error) {
	cfg.UserAgent = operatorAgent + "webhooks"
	port, err := testenv.FreePort(ctx)
	if err != nil {
		return nil, nil, err
	}
	name := service.Name
	if service.Namespace != operatorSpace { // what belongs to no namespace has its name in it
		name += "-" + service.Namespace
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: newScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{ByObject: admission.CacheOptions(name)}, Controller: config.Controller{SkipNameValidation: new(true)},
		LeaderElection: true, LeaderElectionID: "manager.serin.dev", LeaderElectionNamespace: service.Namespace,
		// No manager loses the lease on a machine that is too busy for ten seconds.
		LeaderElectionReleaseOnCancel: true, LeaseDuration: new(5 * time.Minute), RenewDeadline: new(4 * time.Minute),
	})
	if err != nil {
		return nil, nil, err
	}
	_, err = admission.SetupWithManager(ctx, mgr, admission.Options{
		Configuration: name, Service: service, Host: address.String(), Port: int(port), Secret: service.Name,
		Operator: operatorUser, Clock: clock.RealClock{},
	})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: service.Namespace, GenerateName: service.Name + "-", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
	}
	return mgr, slice, err
}

// publish makes a manager an endpoint of its Service. Kubernetes 1.30 calls webhooks by the
// API that EndpointSlices came after, when it does not go through the Service's address.
func publish(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	if err := admin.Create(ctx, slice); err != nil || *otherKubernetes == "" {
		return err
	}
	all := endpointsOf(slice)
	_, err := controllerutil.CreateOrUpdate(ctx, admin, all, func() error {
		all.Subsets = append(all.Subsets, corev1.EndpointSubset{ //nolint:staticcheck // see above
			Addresses: []corev1.EndpointAddress{{IP: slice.Endpoints[0].Addresses[0]}},
			Ports:     []corev1.EndpointPort{{Name: *slice.Ports[0].Name, Port: *slice.Ports[0].Port, Protocol: *slice.Ports[0].Protocol}},
		})
		return nil
	})
	return err
}

func endpointsOf(slice *discoveryv1.EndpointSlice) *corev1.Endpoints { //nolint:staticcheck // see publish
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}} //nolint:staticcheck // see publish
}

// ownWebhooks are webhooks of one namespace, whose managers can be taken away.
type ownWebhooks struct {
	*scene
	configuration *admissionv1.MutatingWebhookConfiguration
	managers      []*operator
	slices        []*discoveryv1.EndpointSlice
}

// ownName is what the configuration of a namespace's own webhooks is called.
func ownName(namespace string) string { return "webhooks-" + namespace }

// takeOwn has an operator rely on them.
func takeOwn(see *sight) {
	see.admission = &rollout.Admission{Mode: rollout.AdmissionWebhook, Webhooks: ownName(see.namespaces[0]), Hold: admission.WebhookHold}
}

// installOwn creates webhooks for the namespace, with a failurePolicy, and serves them.
func (s *scene) installOwn(failurePolicy admissionv1.FailurePolicyType) *ownWebhooks {
	s.Helper()
	ownAddress(s.T)
	objects, err := webhookObjects(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	w := &ownWebhooks{scene: s}
	w.configuration, err = webhookConfiguration(objects, func(string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	})
	if err != nil {
		s.Fatal(err)
	}
	w.configuration.Name = ownName(s.namespace)
	for i := range w.configuration.Webhooks {
		hook := &w.configuration.Webhooks[i]
		if hook.Name == admission.WebhookHold {
			hook.FailurePolicy = &failurePolicy
		}
		hook.ClientConfig.Service.Namespace, hook.ClientConfig.Service.Name = s.namespace, "webhooks"
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} { // the same rights, for the other name
		o := objects[kind]
		o.SetName(w.configuration.Name)
		replaceText(s.T, o, webhooksName, w.configuration.Name)
		createForTest(s.T, o)
	}
	for _, kind := range []string{"Service", "Secret"} {
		objects[kind].SetName("webhooks")
		s.create(objects[kind])
	}
	createForTest(s.T, w.configuration)
	w.start()
	return w
}

// replaceText replaces a text in all values of an object.
func replaceText(t *testing.T, o *unstructured.Unstructured, old, text string) {
	t.Helper()
	encoded, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.UnmarshalJSON([]byte(strings.ReplaceAll(string(encoded), `"`+old+`"`, `"`+text+`"`))); err != nil {
		t.Fatal(err)
	}
}

// start has a manager serve the webhooks, and returns once it is called.
func (w *ownWebhooks) start() {
	w.Helper()
	mgr, slice, err := newWebhookManager(w.Context(), rest.CopyConfig(plane.Config), ownAddress(w.T), types.NamespacedName{Namespace: w.namespace, Name: "webhooks"})
	if err != nil {
		w.Fatal(err)
	}
	w.managers, w.slices = append(w.managers, run(w.T, mgr)), append(w.slices, slice)
	w.eventually("it shows a certificate, as a pod that is ready does", func(ctx context.Context) bool {
		_, err := shownBy(ctx, slice)
		return err == nil
	})
	if err := publish(w.Context(), slice); err != nil {
		w.Fatal(err)
	}
	w.eventually("the webhooks are known by their authority", func(ctx context.Context) bool {
		return admin.Get(ctx, client.ObjectKeyFromObject(w.configuration), w.configuration) == nil && len(w.configuration.Webhooks[0].ClientConfig.CABundle) > 0
	})
}

// away takes every manager away.
func (w *ownWebhooks) away() {
	w.Helper()
	for i, m := range w.managers {
		m.stop(w.T)
		if err := admin.Delete(w.Context(), w.slices[i]); err != nil {
			w.Fatal(err)
		}
	}
	if err := admin.Delete(w.Context(), endpointsOf(w.slices[0])); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	w.managers, w.slices = nil, nil
}

// healthy is whether Argo CD's rule calls the Deployment Healthy: paused, it would be Suspended.
func (s *scene) healthy() bool {
	s.Helper()
	d := s.deployment()
	st := d.Status
	return !d.Spec.Paused && st.ObservedGeneration >= d.Generation && st.UpdatedReplicas == *d.Spec.Replicas && st.Replicas == st.UpdatedReplicas && st.AvailableReplicas == st.UpdatedReplicas
}

// waitHealthy waits until nothing pauses the Deployment between releases: what holds it is
// relied on some seconds after it is there.
func (s *scene) waitHealthy() {
	s.Helper()
	s.eventually("healthy between releases", func(context.Context) bool { return s.healthy() })
}

// shownBy is the certificate that a manager shows.
func shownBy(ctx context.Context, slice *discoveryv1.EndpointSlice) (serial string, err error) {
	address := net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port)))
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), connection.Close()
}
