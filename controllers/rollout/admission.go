// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AdmissionMode is what changes writes of other actors before they are stored.
type AdmissionMode string

const (
	// AdmissionPolicies are MutatingAdmissionPolicies of admissionregistration.k8s.io/v1.
	AdmissionPolicies AdmissionMode = "policies"
	// AdmissionPoliciesV1beta1 are those of v1beta1.
	AdmissionPoliciesV1beta1 AdmissionMode = "policies-v1beta1"
	// AdmissionWebhook is a mutating webhook of the managers.
	AdmissionWebhook AdmissionMode = "webhook"
)

// Admission is what changes writes of other actors for the operator. The zero value is nothing.
type Admission struct {
	// Mode is "" where the cluster serves no such kind.
	Mode AdmissionMode
	// Webhooks is the name of the MutatingWebhookConfiguration.
	Webhooks string
	// Hold is the name of what pauses a managed Deployment in the write that changes its
	// template: a policy and its binding, or one of the webhooks. "" when there is none.
	Hold string
	// Configure is the name of what has a version's pods read its copies.
	Configure string
}

// admissionSettles is how long every API server gets to notice a new policy or webhook
// before it is relied on: each watches for itself.
const admissionSettles = 5 * time.Second

// observeGuard looks whether what holds changed Deployments is in force.
func (r *Reconciler) observeGuard(ctx context.Context, s *snapshot) (err error) {
	s.GuardInForce, err = r.inForce(ctx, s, r.options.Admission.Hold)
	return err
}

// inForce looks whether a policy and its binding, or a webhook, is in place.
func (r *Reconciler) inForce(ctx context.Context, s *snapshot, name string) (bool, error) {
	a := r.options.Admission
	inForce := a.Mode != "" && name != ""
	if !inForce {
		return false, nil
	}
	key := name
	if a.Mode == AdmissionWebhook {
		key = a.Webhooks
	}
	for _, obj := range a.objects() {
		err := r.client.Get(ctx, types.NamespacedName{Name: key}, obj)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%T %q could not be read: %w", obj, key, err)
		}
		if webhooks, is := obj.(*admissionv1.MutatingWebhookConfiguration); is && !calls(webhooks, name) {
			return false, nil
		}
		if left := admissionSettles - s.Now.Sub(obj.GetCreationTimestamp().Time); left > 0 {
			s.recheck, inForce = max(s.recheck, left), false
		}
	}
	return inForce, nil
}

// objects are the kinds that have to be there.
func (a Admission) objects() []client.Object {
	switch a.Mode {
	case AdmissionPolicies:
		return []client.Object{&admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}}
	case AdmissionPoliciesV1beta1:
		return []client.Object{&admissionv1beta1.MutatingAdmissionPolicy{}, &admissionv1beta1.MutatingAdmissionPolicyBinding{}}
	case AdmissionWebhook:
		return []client.Object{&admissionv1.MutatingWebhookConfiguration{}}
	}
	return nil
}

// names are those that these objects have.
func (a Admission) names() []string { return []string{a.Hold, a.Configure, a.Webhooks} }

// calls is whether the API server can call a webhook: it knows by which authorities.
func calls(configuration *admissionv1.MutatingWebhookConfiguration, name string) bool {
	return slices.ContainsFunc(configuration.Webhooks, func(w admissionv1.MutatingWebhook) bool {
		return w.Name == name && len(w.ClientConfig.CABundle) > 0
	})
}
