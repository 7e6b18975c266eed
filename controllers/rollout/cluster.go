// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/workload"
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

// fieldDistribution is the field of a Service that says which endpoints are preferred.
const fieldDistribution = "spec.trafficDistribution"

// distributions are the values of spec.trafficDistribution that the API server took.
// It takes few, so each is tried once until the operator restarts.
type distributions struct {
	taken sync.Map
}

// observeDistribution tries whether the API server takes the traffic distribution that
// the Rollout wants. Which values it takes depends on its version, so only it knows;
// and it is tried before a release, since in the middle of one it is too late.
func (r *Reconciler) observeDistribution(ctx context.Context, s *snapshot) {
	wanted := ptr.Deref(s.Rollout.Spec.TrafficDistribution, "")
	if wanted == "" || s.Service.Presence != kit.Present || !s.Rollout.DeletionTimestamp.IsZero() {
		return
	}
	if ptr.Deref(s.root.Spec.TrafficDistribution, "") == string(wanted) {
		return // it took it before
	}
	if _, taken := r.distributions.taken.Load(wanted); taken {
		return
	}
	probe := makeBackend(s, v1alpha1.RoleStable, "probe")
	probe.Name, probe.GenerateName = "", workload.BackendName(s.root.Name, "probe-")
	// Nothing is made that the cache could show: to wait for it would fail, since the
	// answer to a dry run has no resourceVersion.
	err := r.client.Create(ctx, probe, client.DryRunAll, client.FieldOwner(v1alpha1.FieldManager), client.DisableReadYourWritesConsistency)
	switch {
	case err == nil && ptr.Deref(probe.Spec.TrafficDistribution, "") == string(wanted):
		r.distributions.taken.Store(wanted, true)
	case err == nil:
		s.DistributionProblem = fmt.Sprintf("this cluster drops %q, since it does not know the field; remove it", wanted)
	default:
		if s.DistributionProblem = refusedDistribution(err); s.DistributionProblem == "" {
			// Nothing against the value: a quota, for instance, is met when the Service is made.
			log.FromContext(ctx).Info("Could not check whether the API server accepts the traffic distribution", "value", wanted, "reason", err.Error())
		}
	}
}

// refusedDistribution is what the API server has against the value; "" when the error is
// about something else.
func refusedDistribution(err error) string {
	if !apierrors.IsInvalid(err) {
		return ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == fieldDistribution && cause.Type == metav1.CauseTypeFieldValueNotSupported {
			return "this cluster refuses it: " + strings.TrimSuffix(cause.Message, ".") + "; write one of those, or remove it"
		}
	}
	return ""
}
