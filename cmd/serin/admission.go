// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/serin-dev/serin/certificate"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/rollout"
)

// admissionOptions say what changes writes of other actors before they are stored.
type admissionOptions struct {
	mode, hold, configure string
	webhooks, service     string
	secret, certDir       string
	port                  int
}

func (o *admissionOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.mode, "admission-mode", string(rollout.AdmissionPolicies),
		"what pauses a managed Deployment in the write that changes its template: policies, policies-v1beta1, or webhook, which this program serves; where it is not in force, managed Deployments are kept paused")
	flags.StringVar(&o.hold, "guard-policy", "serin-hold-deployments",
		"name of the MutatingAdmissionPolicy, and of its binding, that pauses them")
	flags.StringVar(&o.configure, "configuration-policy", "",
		"name of the MutatingAdmissionPolicy, and of its binding, that has a version's pods read its own contents of ConfigMaps and Secrets; without it, Rollouts can't ask for that. With webhooks, any name")
	flags.StringVar(&o.webhooks, "webhook-configuration", "serin-webhooks", "name of the MutatingWebhookConfiguration")
	flags.StringVar(&o.service, "webhook-service", "", "namespace/name of the Service that leads to the webhooks")
	flags.StringVar(&o.secret, "webhook-certificate-secret", "", "Secret, in the namespace of the Service, for the certificate that all managers share; it must exist and may be empty")
	flags.StringVar(&o.certDir, "webhook-certificate-dir", "", "folder with the files tls.crt and tls.key of a certificate, instead of --webhook-certificate-secret; they are read again when they change")
	flags.IntVar(&o.port, "webhook-port", 9443, "port of the webhooks")
}

// isWebhook is whether this program serves webhooks.
func (o *admissionOptions) isWebhook() bool { return o.mode == string(rollout.AdmissionWebhook) }

// found is what the cluster offers of the mode.
func (o *admissionOptions) found(mapper meta.RESTMapper) (rollout.Admission, error) {
	a := rollout.Admission{Mode: rollout.AdmissionMode(o.mode), Hold: o.hold, Configure: o.configure}
	versions := map[rollout.AdmissionMode]string{
		rollout.AdmissionPolicies: admissionv1.SchemeGroupVersion.Version, rollout.AdmissionPoliciesV1beta1: admissionv1beta1.SchemeGroupVersion.Version,
	}
	version, isPolicies := versions[a.Mode]
	switch {
	case o.isWebhook():
		a.Webhooks, a.Hold = o.webhooks, admission.WebhookHold
		if o.configure != "" {
			a.Configure = admission.WebhookConfigure
		}
		return a, nil
	case !isPolicies:
		return a, fmt.Errorf("--admission-mode: %q is not one of %s, %s, %s", o.mode, rollout.AdmissionPolicies, rollout.AdmissionPoliciesV1beta1, rollout.AdmissionWebhook)
	}
	_, err := mapper.RESTMapping(admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy").GroupKind(), version)
	if meta.IsNoMatchError(err) {
		return rollout.Admission{}, nil
	}
	if err != nil {
		return a, fmt.Errorf("ask whether the cluster serves MutatingAdmissionPolicy: %w", err)
	}
	return a, nil
}

// serve has every manager serve the webhooks, in that mode.
func (o *admissionOptions) serve(ctx context.Context, mgr manager.Manager, serviceAccount string) error {
	if !o.isWebhook() {
		return nil
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(o.service)
	if err != nil || namespace == "" || serviceAccount == "" || (o.secret == "") == (o.certDir == "") {
		return fmt.Errorf("--admission-mode=%s: give --webhook-service=NAMESPACE/NAME, --service-account, and one of --webhook-certificate-secret and --webhook-certificate-dir", o.mode)
	}
	rotator, err := admission.SetupWithManager(ctx, mgr, admission.Options{
		Configuration: o.webhooks, Service: types.NamespacedName{Namespace: namespace, Name: name}, Port: o.port,
		Secret: o.secret, CertDir: o.certDir,
		Operator: "system:serviceaccount:" + strings.ReplaceAll(serviceAccount, "/", ":"), Clock: clock.RealClock{},
	})
	if err != nil || rotator == nil {
		return err
	}
	return metrics.Registry.Register(certificate.Expiry("webhook", rotator))
}

// logMode says what guards managed Deployments, and when nothing does.
func logMode(ctx context.Context, a rollout.Admission) {
	log := ctrl.LoggerFrom(ctx)
	if a.Mode == "" || a.Hold == "" {
		log.Info("Nothing pauses a managed Deployment in the write that changes its template, so managed Deployments stay paused between releases; install the chart with admission.mode=webhook")
		return
	}
	log.Info("Managed Deployments are paused in the write that changes their template", "by", a.Mode, "name", a.Hold)
}
