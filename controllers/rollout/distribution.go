// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/workload"
)

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
			log.FromContext(ctx).Info("Could not try whether the API server takes the traffic distribution", "value", wanted, "reason", err.Error())
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
