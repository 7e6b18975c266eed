// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/serin-dev/serin/certificate"
)

// period between two looks at a certificate that nothing changes: it lasts for a month after
// it is due.
const period = time.Hour

// Options of the webhooks.
type Options struct {
	// Configuration is the name of the MutatingWebhookConfiguration.
	Configuration string
	// Service that leads to the webhooks, in the operator's namespace.
	Service types.NamespacedName
	// Host and Port to serve at.
	Host string
	Port int
	// Secret, in the same namespace, of the certificate that all managers share. Without it,
	// CertDir has the files tls.crt and tls.key of one that is provided.
	Secret, CertDir string
	// Operator is the user as which the operator writes.
	Operator string
	Clock    clock.Clock
}

// CacheOptions has a manager see no configuration of webhooks but this one.
func CacheOptions(configuration string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&admissionv1.MutatingWebhookConfiguration{}: {Field: fields.OneTermEqualSelector("metadata.name", configuration)},
	}
}

// SetupWithManager has every manager serve the webhooks, whether it leads or not, and returns
// what measures the certificate; nil for one that is provided.
func SetupWithManager(ctx context.Context, mgr manager.Manager, o Options) (*certificate.Rotator, error) {
	options := webhook.Options{Host: o.Host, Port: o.Port, CertDir: o.CertDir}
	var rotator *certificate.Rotator
	if o.Secret != "" {
		var err error
		if rotator, err = addRotator(ctx, mgr, o); err != nil {
			return nil, err
		}
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = shown(rotator) })
	}
	server := webhook.NewServer(options)
	bounded := Bounded(o.Clock)
	for path, rule := range Rules(o.Operator) {
		server.Register(path, bounded(Handler(rule)))
	}
	if err := mgr.AddReadyzCheck("webhooks", server.StartedChecker()); err != nil {
		return nil, err
	}
	return rotator, mgr.Add(server)
}

// addRotator keeps the certificate and what the kube-apiserver knows of it.
func addRotator(ctx context.Context, mgr manager.Manager, o Options) (*certificate.Rotator, error) {
	secrets, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of Secrets: %w", err)
	}
	changed, err := changes(ctx, mgr)
	if err != nil {
		return nil, err
	}
	rotator := certificate.NewRotator(certificate.Options{
		Name: o.Service.Name, Hosts: []string{o.Service.Name + "." + o.Service.Namespace + ".svc"},
		Store:     certificate.Secret{Client: secrets.Secrets(o.Service.Namespace), Name: o.Secret},
		Announcer: Announcer{Client: mgr.GetClient(), Name: o.Configuration},
		Period:    period, Wake: changed,
		Clock: o.Clock, Log: mgr.GetLogger().WithName("certificate"),
	})
	if err := mgr.AddReadyzCheck("certificate", func(*http.Request) error { return rotator.Ready() }); err != nil {
		return nil, err
	}
	return rotator, mgr.Add(EveryReplica(func(ctx context.Context) error {
		rotator.Run(ctx, func() {})
		return nil
	}))
}

// changes says when the configuration of the webhooks is another one: what the operator
// wrote into it may be gone.
func changes(ctx context.Context, mgr manager.Manager) (<-chan struct{}, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, &admissionv1.MutatingWebhookConfiguration{})
	if err != nil {
		return nil, fmt.Errorf("watch the configuration of the webhooks: %w", err)
	}
	wake := make(chan struct{}, 1)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default: // a notification is waiting
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	return wake, err
}

// shown is the certificate of the moment.
func shown(r *certificate.Rotator) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		chain, key := r.CurrentCertKeyContent()
		if len(chain) == 0 {
			return nil, errors.New("there is no serving certificate yet")
		}
		pair, err := tls.X509KeyPair(chain, key)
		return &pair, err
	}
}

// EveryReplica runs in every manager, whether it leads or not.
type EveryReplica func(context.Context) error

// Start implements manager.Runnable.
func (f EveryReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EveryReplica) NeedLeaderElection() bool { return false }
