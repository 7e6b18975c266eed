// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

// fresh is how long what Helm said about a release is taken for true. An upgrade looks
// itself whether another one was made.
const fresh = 2 * time.Second

// memory keeps what is expensive to ask Helm for, and what became of upgrades.
type memory struct {
	lock  sync.Mutex
	known map[client.ObjectKey]*knowledge
	// searched are the CanaryReleases for which no copies of earlier ones of the name are left that could be
	// removed.
	searched map[client.ObjectKey]types.UID
}

// knowledge of one CanaryRelease. It is read and written by one reconcile at a time.
type knowledge struct {
	uid        types.UID
	release    releases.Release
	releasedAt time.Time
	// proposal was made from what key says.
	key        [sha256.Size]byte
	proposal   *releases.Proposal
	proposedAt time.Time
	// exceeded is the limit that the proposal of exceededKey met at exceededAt.
	exceeded    error
	exceededKey [sha256.Size]byte
	exceededAt  time.Time
	// rendersSince is since when the values wait to be rendered; zero while they don't.
	rendersSince time.Time
	failure      string
	failedAt     time.Time
	// waits is what the upgrade waits for until its turn comes; "" when Helm was called.
	waits string
	turn  *atomic.Bool
	// asksAt is when it asks again if it has lost its place; zero while it has one.
	asksAt time.Time
	// denied are the rights that were lacking to delete copies.
	denied map[v1alpha1.CanaryCopy]string
	// measured are the Services whose traffic is counted, by name.
	measured map[string]measured
	// reportedAt is when the status was written last.
	reportedAt time.Time
	// orphaned is since when it is gone and its objects are not; zero when that was never seen.
	orphaned time.Time
}

func (m *memory) of(cr *v1alpha1.CanaryRelease) *knowledge {
	m.lock.Lock()
	defer m.lock.Unlock()
	key := client.ObjectKeyFromObject(cr)
	k := m.known[key]
	switch {
	case k == nil:
		k = &knowledge{uid: cr.UID}
		m.known[key] = k
	case k.uid != cr.UID: // another one of the same name; what is measured has to be ended
		for name := range k.measured {
			k.measured[name] = measured{}
		}
		k = &knowledge{uid: cr.UID, measured: k.measured}
		m.known[key] = k
	}
	return k
}

// orphan is the CanaryRelease that is gone and whose objects were not, when last seen; ""
// for none.
func (m *memory) orphan(key client.ObjectKey) types.UID {
	m.lock.Lock()
	defer m.lock.Unlock()
	if k := m.known[key]; k != nil && !k.orphaned.IsZero() {
		return k.uid
	}
	return ""
}

// searchedFor is the CanaryRelease of a name for which no copies of earlier ones are left; "" while that is
// not known.
func (m *memory) searchedFor(key client.ObjectKey) types.UID {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.searched[key]
}

// setSearched notes that none are left; for "" that it is not known any more.
func (m *memory) setSearched(key client.ObjectKey, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.searched[key] = uid; uid == "" {
		delete(m.searched, key)
	}
}

// forget returns what was known.
func (m *memory) forget(key client.ObjectKey) knowledge {
	m.lock.Lock()
	defer m.lock.Unlock()
	k := m.known[key]
	delete(m.known, key)
	if k == nil {
		return knowledge{}
	}
	return *k
}

// observeRelease asks Helm what there is. That it can't say is a fact, which keeps the
// planner from going on, but not from taking back.
func (r *Reconciler) observeRelease(ctx context.Context, s *observation) {
	k, cr := s.helm, s.CanaryRelease
	r.observeUpgrade(s)
	if cr.Spec.Release == "" { // what is left of one that is gone does not say it
		s.Release = helmrelease.Release{Presence: kit.Absent}
		return
	}
	if age := s.Now.Sub(k.releasedAt); k.releasedAt.IsZero() || age < 0 || age >= fresh {
		release, err := r.options.Releases.Get(ctx, cr.Namespace, cr.Spec.Release)
		if err != nil {
			s.Release = helmrelease.Release{Problem: "Helm's records of release " + cr.Spec.Release + " could not be read: " + safe(err)}
			s.tryAgain(err)
			return
		}
		k.release, k.releasedAt = release, s.Now
	}
	ours, err := r.ours(ctx, cr, k.release)
	if err != nil {
		s.Release = helmrelease.Release{Problem: fmt.Sprintf("whether revision %d of release %s has its content is not known: %s", k.release.Newest, cr.Spec.Release, safe(err))}
		s.tryAgain(err)
		return
	}
	s.Release = helmrelease.Release{
		Presence: kit.Present, Newest: int32(k.release.Newest), Deployed: int32(k.release.Deployed), //nolint:gosec // Helm counts revisions one by one
		Status: k.release.Status, Ours: ours,
	}
	if k.release.Newest == 0 {
		s.Release.Presence = kit.Absent
	}
}

// observeUpgrade notes what became of the calls of Helm for an adoption.
func (r *Reconciler) observeUpgrade(s *observation) {
	k, cr := s.helm, s.CanaryRelease
	if d := cr.Status.Decision; d == nil || d.Transition != v1alpha1.CanaryTransitionAdopted {
		k.failure, k.failedAt = "", time.Time{} // of an adoption that was withdrawn
		k.waits, k.turn, k.asksAt = "", nil, time.Time{}
		r.options.Releases.WithdrawUpgrade(client.ObjectKeyFromObject(cr))
	}
	s.UpgradeFailure, s.UpgradeFailedAt = k.failure, k.failedAt
	if k.turn != nil {
		s.UpgradeWaits = k.waits
		s.UpgradeTurn = k.turn.Load() || !k.asksAt.IsZero() && !r.options.Clock.Now().Before(k.asksAt)
	}
}

// tryAgain has the look repeated soon. Where a user has to act, that is looked for every few seconds.
func (s *observation) tryAgain(err error) {
	if !errors.As(err, new(releases.InvalidError)) {
		s.retry = errors.Join(s.retry, withoutValues(err))
	}
}

// ours reports whether the CanaryRelease made the newest revision, or is one that is restored from a
// backup and wants what the lost one has deployed.
func (r *Reconciler) ours(ctx context.Context, cr *v1alpha1.CanaryRelease, release releases.Release) (bool, error) {
	if release.AdoptedBy == "" || release.AdoptedBy == cr.UID || release.Newest != release.Deployed || !adopts(cr) {
		return release.AdoptedBy != "" && release.AdoptedBy == cr.UID, nil
	}
	request, err := r.request(ctx, cr)
	return err == nil && release.AdoptedContent == request.Content(), err
}

// adopts reports whether a CanaryRelease is to be adopted, for whichever content.
func adopts(cr *v1alpha1.CanaryRelease) bool {
	wanted := []v1alpha1.CanaryTransition{cr.Spec.Transition}
	if d := cr.Spec.Delegation; d != nil {
		wanted = append(wanted, d.Transition)
	}
	if d := cr.Status.Decision; d != nil {
		wanted = append(wanted, d.Transition)
	}
	return slices.Contains(wanted, v1alpha1.CanaryTransitionAdopted)
}

// observeProposal asks Helm what the release would be, where that still matters: it is
// compared with the revision of the spec only.
func (r *Reconciler) observeProposal(ctx context.Context, s *observation) {
	k := s.helm
	err := r.propose(ctx, s)
	waits := errors.As(err, new(releases.BusyError))
	switch {
	case !waits:
		k.rendersSince = time.Time{}
		r.options.Releases.WithdrawProposal(client.ObjectKeyFromObject(s.CanaryRelease))
	case k.rendersSince.IsZero():
		k.rendersSince = s.Now
	}
	if p := s.proposal; p != nil {
		s.Proposal = helmrelease.Proposal{Known: true, Digest: p.Digest, Later: p.Later, Refused: p.Refused}
		return
	}
	if err != nil {
		r.unproposed(s, err)
	}
	if waits {
		s.quiet = max(0, quietWait-s.Now.Sub(k.rendersSince))
	}
}

// quietWait is for how long values may wait to be rendered before the status says so: after a
// restart of the operator those of all CanaryReleases do.
const quietWait = time.Minute

// propose has the values rendered where the outcome may be another one than before. What was
// refused stays so while it waits to be rendered again.
func (r *Reconciler) propose(ctx context.Context, s *observation) error {
	if !s.comparable() {
		return nil
	}
	cr, k := s.CanaryRelease, s.helm
	request, err := r.request(ctx, cr)
	if err != nil {
		return err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", cr.Spec.Version, cr.Spec.Path, request.Config))
	if known, err := s.recallProposal(key); known {
		return err
	}
	request.Turn = func() { r.enqueue(client.ObjectKeyFromObject(cr)) }
	proposal, err := r.options.Releases.Propose(ctx, request)
	if errors.As(err, new(releases.BusyError)) {
		return err
	}
	s.proposal = nil
	if err == nil {
		err = r.complete(ctx, s, &proposal)
	}
	if errors.As(err, new(releases.LimitError)) {
		k.exceeded, k.exceededKey, k.exceededAt = err, key, s.Now
	}
	if err != nil {
		return err
	}
	k.proposal, k.key, k.proposedAt, s.proposal = &proposal, key, s.Now, &proposal
	return nil
}

// recallProposal takes the proposal that was made of the same values, and reports whether they need
// not be rendered again.
func (s *observation) recallProposal(key [sha256.Size]byte) (known bool, err error) {
	k := s.helm
	if k.exceeded != nil && k.exceededKey == key && s.Now.Sub(k.exceededAt) < limitRetry {
		return true, k.exceeded
	}
	if k.key == key {
		s.proposal = k.proposal
	}
	// What refuses it may be in the cluster, and be gone by now.
	return s.proposal != nil && (len(s.proposal.Refused) == 0 || s.Now.Sub(k.proposedAt) < recheck), nil
}

// comparable reports whether the release is the one of the spec, and not deprecated.
func (s *observation) comparable() bool {
	version, d := s.CanaryRelease.Spec.Version, s.CanaryRelease.Status.Decision
	deprecated := d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated
	return s.Release.Presence == kit.Present && s.Release.Newest == version && s.Release.Deployed == version && !deprecated
}

// limitRetry is when a call of Helm that met a limit is made again. It meets it again, unless
// the node was overloaded: more tries would only keep others waiting.
const limitRetry = 5 * time.Minute

// unproposed notes why there is no proposal. A user has to change what is invalid, and most
// of what meets a limit; anything else is tried again.
func (r *Reconciler) unproposed(s *observation, err error) {
	if invalid, ok := errors.AsType[releases.InvalidError](err); ok {
		s.Proposal = helmrelease.Proposal{Invalid: true, Problem: invalid.Error()}
		return
	}
	s.Proposal = helmrelease.Proposal{Problem: "Serin could not find out what release " + s.CanaryRelease.Spec.Release + " would become: " + safe(err)}
	if !errors.As(err, new(releases.LimitError)) && !errors.As(err, new(releases.BusyError)) { // whose turn is told
		s.retry = errors.Join(s.retry, withoutValues(err))
	}
}

// request is what Helm is asked for, with the values to try.
func (r *Reconciler) request(ctx context.Context, cr *v1alpha1.CanaryRelease) (releases.Request, error) {
	request := releases.Request{
		Namespace: cr.Namespace, Release: cr.Spec.Release, Version: int(cr.Spec.Version), Path: cr.Spec.Path,
		Config: []byte(cr.Spec.Config), UID: cr.UID, Name: cr.Name,
	}
	from := cr.Spec.ConfigFrom
	if from == nil {
		return request, nil
	}
	c, err := r.options.As(cr.Namespace)
	if err != nil {
		return request, err
	}
	secret, ref := &corev1.Secret{}, from.SecretKeyRef
	if err := c.Get(ctx, types.NamespacedName{Namespace: cr.Namespace, Name: ref.Name}, secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return request, releases.InvalidError{Field: "spec.configFrom.secretKeyRef", Message: fmt.Sprintf("there is no Secret %q; create it or correct the name", ref.Name)}
		}
		return request, fmt.Errorf("the Secret %q could not be read: %w", ref.Name, err)
	}
	value, found := secret.Data[ref.Key]
	if !found {
		return request, releases.InvalidError{Field: "spec.configFrom.secretKeyRef", Message: fmt.Sprintf("the Secret %q has no key %q; add it or correct the key", ref.Name, ref.Key)}
	}
	if len(value) > maxConfig {
		return request, releases.InvalidError{Field: "spec.configFrom.secretKeyRef", Message: fmt.Sprintf("the key %q of the Secret %q has more than %d bytes", ref.Key, ref.Name, maxConfig)}
	}
	request.Config = value
	return request, nil
}

// maxConfig is the most bytes that values to try may have.
const maxConfig = 64 << 10

// askAgain is after how long an upgrade asks for another turn when it could not use the one it had.
const askAgain = 5 * time.Second

// upgrade makes the release what the canary is. How that failed is remembered: the
// planner reports it, and says when to try again. That others come first is remembered too,
// and is no failure.
func (r *Reconciler) upgrade(ctx context.Context, s observation) error {
	k := s.helm
	k.releasedAt = time.Time{}
	brief, cancel := bounds.Within(ctx)
	defer cancel()
	request, err := r.request(brief, s.CanaryRelease)
	turn, asksAt := &atomic.Bool{}, time.Time{}
	if err == nil {
		request.Turn = func() {
			turn.Store(true)
			r.enqueue(client.ObjectKeyFromObject(s.CanaryRelease))
		}
		request.Still = func(ctx context.Context) error {
			ctx, cancel := bounds.Within(ctx)
			defer cancel()
			err := r.unchanged(ctx, s.CanaryRelease, request)
			if err == nil {
				err = r.still(ctx, s.CanaryRelease)
			}
			if errors.As(err, new(releases.BusyError)) { // the turn is gone, and no other one is promised
				asksAt = r.options.Clock.Now().Add(askAgain)
			}
			return err
		}
		err = r.options.Releases.Adopt(ctx, request)
	}
	k.failure, k.failedAt, k.waits, k.turn, k.asksAt = "", time.Time{}, "", nil, time.Time{}
	if busy, waits := errors.AsType[releases.BusyError](err); waits {
		k.waits, k.turn, k.asksAt = busy.Error(), turn, asksAt
	} else if err != nil {
		k.failure, k.failedAt = safe(err), r.options.Clock.Now()
		r.reporter().Record(s.CanaryRelease, corev1.EventTypeWarning, v1alpha1.ReasonUpgradeFailed, "The upgrade of release "+s.CanaryRelease.Spec.Release+" failed: "+safe(err))
	}
	return errAgain
}

// withdraw gives up the places of a CanaryRelease that has ended or is gone.
func (r *Reconciler) withdraw(name types.NamespacedName) {
	r.options.Releases.WithdrawUpgrade(name)
	r.options.Releases.WithdrawProposal(name)
}

// still is an error when the spec is another by now, or gone: to compare the values can take a
// minute, and the upgrade may be withdrawn. A cache may not know that yet, and Helm is not stopped.
func (r *Reconciler) still(ctx context.Context, cr *v1alpha1.CanaryRelease) error {
	now := &v1alpha1.CanaryRelease{}
	err := r.options.Live.Get(ctx, client.ObjectKeyFromObject(cr), now)
	if err != nil && client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the CanaryRelease could not be read: %w", err)
	}
	if err != nil || now.UID != cr.UID || now.Generation != cr.Generation {
		return releases.BusyError("the CanaryRelease was changed while its values were compared")
	}
	return nil
}

// unchanged is an error when the values are not those any more that the canary has: what
// was not tried is not deployed.
func (r *Reconciler) unchanged(ctx context.Context, cr *v1alpha1.CanaryRelease, request releases.Request) error {
	request.Turn = nil // it is made within the turn of the upgrade
	proposal, err := r.options.Releases.Propose(ctx, request)
	if err != nil {
		return err
	}
	if proposal.Digest != cr.Status.ManifestDigest {
		return releases.InvalidError{Field: "spec.config", Message: "no longer gives the canary that was tried; revert it, or set spec.transition to Deprecated"}
	}
	return nil
}
