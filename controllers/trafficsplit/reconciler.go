// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// staleRetry is when to look again after a write that failed because the cache
// was behind. The event that brings the cache up to date normally comes first.
const staleRetry = time.Second

// Reconciler keeps the traffic of root Services as their TrafficSplits say.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Options of the controller.
	Options Options

	// withoutGroups is true when the cluster has no HTTPRouteGroups.
	withoutGroups bool
	// waiting are reports that are out of date soon.
	waiting debounce.Waits[types.NamespacedName]
	// settling is since when the routes of splits are as wanted, so that this is on record
	// only once the weights are live. A restart that forgets it gives the proxies behind the
	// routes their whole time again.
	settling memory[*splitv1.ConfirmedStatus]
	// failures are why the last action on a split failed, where that repeats until a user
	// changes something. A restart tries the action once more, and learns it again.
	failures memory[string]
	// replaced are the versions of splits that this process replaced by another status, or
	// whose finalizer it removed. While the cache shows one still, what it says is known to
	// be over.
	replaced memory[string]
	// deleted are the versions of objects, by kind and name, that splits share and this
	// process deleted. The cache may show one still.
	deleted memory[string]
	// ages knows since when backends have endpoints.
	ages endpointAges
}

// Reconcile is one pass over one split: observe, decide, report, act. What was decided is
// on record before anything happens because of it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return settle(ctx, ctrl.Result{}, err)
	}
	if o == nil {
		r.forget(req.NamespacedName)
		again, err := r.clearOrphans(ctx, req.NamespacedName)
		return settle(ctx, ctrl.Result{RequeueAfter: again}, err)
	}
	_, deciding := tracing.Start(ctx, "decide")
	decision := plan.Decide(o.Observation)
	deciding.End()
	if report := decision.Report; report != nil {
		report.Distribution = plan.Distribute(o.placed)
		r.settling.note(req.NamespacedName, report.Confirmed)
		if why := r.failures.of(req.NamespacedName); why != "" && report.Programmed.Status != metav1.ConditionTrue {
			report.Programmed = plan.Condition{Status: metav1.ConditionFalse, Reason: splitv1.ReasonPending, Message: why}
		}
	}
	again, err := r.report(ctx, o, decision.Report)
	if err == nil {
		err = r.act(ctx, o, decision.Actions)
		r.noteFailure(o, err)
	}
	result := ctrl.Result{RequeueAfter: decision.After}
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return settle(ctx, result, err)
}

// errBehind is a conflict that is sure to come, so that it is not tried.
var errBehind = apierrors.NewConflict(splitv1.GroupVersion.WithResource("trafficsplits").GroupResource(), "", errors.New("the cache shows a version that was replaced"))

// noteFailure remembers why an action failed, for the report of the next pass.
func (r *Reconciler) noteFailure(o *observation, err error) {
	why := ""
	switch {
	case final(err):
		why = kit.Shorten(err.Error())
	case err != nil:
		return
	}
	if r.failures.note(client.ObjectKeyFromObject(o.Split), why) && why != "" {
		r.reporter().Record(o.Split, corev1.EventTypeWarning, "ActionFailed", why)
	}
}

// forget is called when a split is gone.
func (r *Reconciler) forget(split types.NamespacedName) {
	r.waiting.Forget(split)
	r.ages.forget(split)
	r.settling.note(split, nil)
	r.failures.note(split, "")
	r.replaced.note(split, "")
}

// settle turns a failed precondition into another look: what was observed is not
// what is there, so the decision no longer counts.
func settle(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) && !fieldConflict(err) {
		log.FromContext(ctx).V(1).Info("The object changed after it was read; trying again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return result, err
}

// final is true for an error that may repeat until a user changes something, such as a webhook that
// does not answer, and so belongs in the status.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err) || fieldConflict(err)
}

// fieldConflict is true when another manager owns an object that is to be made, which
// the cache does not show.
func fieldConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
