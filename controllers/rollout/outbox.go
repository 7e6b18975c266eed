// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/controllers/notify/payload"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Outbox delivers questions and notifications in the background.
type Outbox interface {
	// Send hands a request over; one that is known by its ID already changes nothing.
	Send(rollout types.NamespacedName, r notify.Request)
	// Results are what became of the requests of a Rollout, by ID.
	Results(rollout types.NamespacedName) map[string]notify.Result
	// Keep forgets all requests of a Rollout but some.
	Keep(rollout types.NamespacedName, ids []string)
	// Changed carries the Rollouts with another result.
	Changed() <-chan event.TypedGenericEvent[types.NamespacedName]
}

// observeAnswers reads what endpoints made of calls and notifications.
func (r *Reconciler) observeAnswers(s *snapshot) {
	if len(s.Rollout.Status.Hooks) == 0 && len(s.Rollout.Status.Notifications) == 0 {
		return
	}
	s.Answers = map[string]state.Answer{}
	for id, result := range r.options.Outbox.Results(client.ObjectKeyFromObject(s.Rollout)) {
		s.Answers[id] = state.Answer{
			Tried: result.Attempts > 0, Final: result.Outcome.Final(), Taken: result.Outcome == notify.Delivered, Message: result.Message,
		}
	}
}

// send hands over what is open, and forgets what is not any more.
func (r *Reconciler) send(ro *v1alpha1.Rollout, d state.Decision) error {
	key := client.ObjectKeyFromObject(ro)
	about := payload.Rollout{Namespace: ro.Namespace, Name: ro.Name, UID: ro.UID, Service: ro.Spec.Service}
	ids := make([]string, 0, len(d.Questions)+len(d.Notifications))
	for _, q := range d.Questions {
		ids = append(ids, q.ID)
		if err := r.call(key, about, q); err != nil {
			return err
		}
	}
	for _, n := range d.Notifications {
		ids = append(ids, n.ID)
		if err := r.notify(ro, about, n); err != nil {
			return err
		}
	}
	r.options.Outbox.Keep(key, ids)
	return nil
}

func (r *Reconciler) call(key types.NamespacedName, about payload.Rollout, q state.Question) error {
	question := payload.Question{ID: q.ID, Hook: q.Hook.Name, When: q.Hook.When, Revision: q.Revision}
	if q.Of > 0 {
		question.Step = &payload.Step{Index: q.Index, Of: q.Of, Weight: q.Weight}
	}
	p, err := payload.Hook(about, question)
	if err != nil {
		return err
	}
	r.options.Outbox.Send(key, notify.Request{ID: q.ID, Endpoint: q.Hook.Endpoint, ContentType: p.ContentType, Body: p.Body})
	return nil
}

// notify sends a notification, or calls a hook with the end of a release.
func (r *Reconciler) notify(ro *v1alpha1.Rollout, about payload.Rollout, n v1alpha1.PendingNotification) error {
	var p payload.Payload
	var to v1alpha1.Endpoint
	var err error
	if n.Hook {
		i := slices.IndexFunc(ro.Spec.Hooks, func(h v1alpha1.Hook) bool { return h.Name == n.Name })
		if i < 0 {
			return nil // removed from the spec: the next decision drops it
		}
		to = ro.Spec.Hooks[i].Endpoint
		p, err = payload.Hook(about, payload.Question{
			ID: n.ID, Hook: n.Name, When: v1alpha1.HookAfterRelease, Revision: n.Revision, Outcome: string(n.Kind), Message: n.Message,
		})
	} else {
		i := slices.IndexFunc(ro.Spec.Notifications, func(x v1alpha1.Notification) bool { return x.Name == n.Name })
		if i < 0 {
			return nil
		}
		to = ro.Spec.Notifications[i].Endpoint
		p, err = payload.Notification(about, n, ro.Spec.Notifications[i].Format)
	}
	if err != nil {
		return err
	}
	r.options.Outbox.Send(client.ObjectKeyFromObject(ro), notify.Request{ID: n.ID, Endpoint: to, ContentType: p.ContentType, Body: p.Body})
	return nil
}
