// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	rcommon "helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

const (
	// maxHistory is how many revisions Helm's own command keeps.
	maxHistory = 10
	// hookTimeout is how long Helm's own command waits for a hook.
	hookTimeout = 5 * time.Minute
)

// step is what an adoption has to do next.
type step int

const (
	// stepDone: the release is adopted.
	stepDone step = iota
	// stepUpgrade: Helm can upgrade.
	stepUpgrade
	// stepFail: an upgrade of ours was interrupted; Helm waits for it until its record says so.
	stepFail
)

// nextStep decides what a release needs for a request to be adopted. Another upgrade, before
// or in between, ends it: the adoption would undo its values.
func nextStep(r Release, q Request) (step, error) {
	if r.Newest == 0 {
		return 0, releases.Invalid(fieldRelease, fmt.Sprintf("there is no release %s in namespace %s", q.Release, q.Namespace))
	}
	deployed := rcommon.Status(r.Status) == rcommon.StatusDeployed
	if r.Newest == q.Version {
		if !deployed {
			return 0, releases.Invalid(fieldVersion, fmt.Sprintf("revision %d of release %s is %s: name one that is deployed", q.Version, q.Release, r.Status))
		}
		return stepUpgrade, nil
	}
	if r.AdoptedBy != q.UID || r.Newest < q.Version {
		return 0, otherUpgrade(r.Newest, q)
	}
	switch rcommon.Status(r.Status) {
	case rcommon.StatusDeployed:
		return stepDone, nil
	case rcommon.StatusPendingUpgrade:
		return stepFail, nil
	case rcommon.StatusFailed:
		return stepUpgrade, nil
	default:
		return 0, releases.Invalid(fieldRelease, fmt.Sprintf("release %s is %s since its revision %d", q.Release, r.Status, r.Newest))
	}
}

func otherUpgrade(newest int, q Request) error {
	return releases.Invalid(fieldVersion, fmt.Sprintf("revision %d of release %s was not made by this CanaryRelease: start again from that revision", newest, q.Release))
}

// Adopt upgrades the release to the candidate. It is safe to repeat after a crash at any
// write, and returns nil when the newest revision is deployed by it.
func (h *Helm) Adopt(ctx context.Context, q Request) error {
	s, err := h.open(ctx, q.Namespace, false)
	if err != nil {
		return err
	}
	return s.explain(s.adopt(ctx, q))
}

func (s *session) adopt(ctx context.Context, q Request) error {
	state, err := releases.State(ctx, s.labels, q.Release)
	if err != nil {
		return err
	}
	next, err := nextStep(state, q)
	if err != nil || next == stepDone {
		return err
	}
	c, err := s.candidate(ctx, q)
	if err != nil {
		return err
	}
	if err := s.check(q, c); err != nil {
		return err
	}
	if next == stepFail {
		if err := s.fail(q, state.Newest); err != nil {
			return err
		}
	}
	return s.upgrade(ctx, q, c, state.Newest+1)
}

// fail puts on record that an upgrade was interrupted.
func (s *session) fail(q Request, revision int) error {
	secrets := &measured{SecretInterface: s.client.CoreV1().Secrets(s.namespace)}
	records := driver.NewSecrets(secrets)
	stored, err := records.Get(recordName(q.Release, revision))
	if err != nil {
		return cmp.Or(secrets.refused, err)
	}
	release, ok := stored.(*helm.Release)
	if !ok || release.Info == nil {
		return releases.Invalid(fieldRelease, fmt.Sprintf("the record of revision %d of release %s can't be read", revision, q.Release))
	}
	release.Info.Status = rcommon.StatusFailed
	release.Info.Description = "Canary release " + q.Name + ": interrupted, and tried again"
	return records.Update(recordName(q.Release, revision), release)
}

// upgrade is helm upgrade. It applies on the client's side: a merge of the old
// manifest, the new one and what runs leaves alone what others added, such as the key in
// a Service's selector while traffic goes through proxies, and spec.paused of a
// Deployment. A server-side apply would meet them as conflicts.
func (s *session) upgrade(ctx context.Context, q Request, c *candidate, revision int) error {
	chart, err := c.chart()
	if err != nil {
		return err
	}
	records := &measured{SecretInterface: s.client.CoreV1().Secrets(s.namespace)}
	secrets := &lock{SecretInterface: records, revision: strconv.Itoa(revision)}
	configuration, err := s.configuration(driver.NewSecrets(secrets))
	if err != nil {
		return err
	}
	up := action.NewUpgrade(configuration)
	up.Namespace = s.namespace
	up.ServerSideApply = "false"
	up.WaitStrategy = kube.HookOnlyStrategy
	up.Timeout = hookTimeout
	if revision == q.Version+1 { // later tries must not push revisions of users out of the history
		up.MaxHistory = maxHistory
	}
	// The values are given in full; without them Helm takes the last ones.
	up.ResetValues = true
	// They are checked already, without loading what a schema refers to.
	up.SkipSchemaValidation = true
	up.Description = "Canary release " + q.Name + " adopted"
	up.Labels = map[string]string{releases.LabelUID: string(q.UID), releases.LabelRevision: strconv.Itoa(revision), releases.LabelContent: q.Content()}
	_, err = up.RunWithContext(ctx, q.Release, chart, c.values)
	if records.refused != nil {
		return records.refused
	}
	return s.explainUpgrade(err, q, revision)
}

// lock lets Helm make the one revision that was decided on. Two upgrades at a time
// want to create the same record, and one of them fails; this is for an upgrade that
// was over before Helm looked for the newest revision.
type lock struct {
	typedv1.SecretInterface
	revision string
}

var errOtherRevision = errors.New("another revision was made meanwhile")

func (l *lock) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	if secret.Labels["version"] != l.revision {
		return nil, errOtherRevision
	}
	return l.SecretInterface.Create(ctx, secret, options)
}

// measured keeps records from Helm that are too large: it would unpack them without a bound.
type measured struct {
	typedv1.SecretInterface
	// refused is the first refusal, which Helm does not pass on as it is.
	refused error
}

func (m *measured) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := m.SecretInterface.Get(ctx, name, options)
	if err == nil {
		err = m.check(secret)
	}
	return secret, err
}

func (m *measured) List(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	list, err := m.SecretInterface.List(ctx, options)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if err := m.check(&list.Items[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (m *measured) check(secret *corev1.Secret) error {
	err := measure(secret)
	m.refused = cmp.Or(m.refused, err)
	return err
}

// explainUpgrade says why an upgrade failed, without Helm's text: it quotes manifests.
func (s *session) explainUpgrade(err error, q Request, revision int) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOtherRevision) || errors.Is(err, driver.ErrReleaseExists):
		return otherUpgrade(revision, q)
	case s.trouble() != nil:
		return s.trouble()
	case strings.Contains(err.Error(), "hooks failed"):
		return releases.Invalid(fieldRelease, "a hook of the chart failed: see the Jobs of the namespace and helm history "+q.Release)
	case strings.Contains(err.Error(), "cannot be imported into the current release"):
		return releases.Invalid(fieldConfig, "an object that the upgrade adds already exists and does not belong to the release: delete it, or rename the new one")
	case errors.As(err, &status):
		return releases.Invalid(fieldConfig, releases.Refusal(status.Status())+": see helm history "+q.Release)
	default:
		return releases.Invalid(fieldConfig, "Helm can't make this upgrade: see helm upgrade --dry-run=server and helm history "+q.Release)
	}
}
