// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// manager is the user that the operator is.
const manager = "system:serviceaccount:" + operatorSpace + ":" + release

// mayOnlyDecide is how the refusal of a promoter's write begins, after the fields.
const mayOnlyDecide = `: user "promoter" may only decide`

// addPromoter adds a user to a team who is bound to the ClusterRole of promoters alone.
func addPromoter(s *scene) {
	s.Helper()
	s.bindClusterRole("promoter", release+"-promoter")
	// They may even create Jobs themselves: what is refused is to have a Rollout do so.
	s.allow("promoter", rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}})
	s.waitRights("promoter", may{"promote", "rollouts", ""}, may{"promote", "canaryreleases", ""}, may{"patch", "canaryreleases", ""})
	s.waitRights("admin", may{"promote", "canaryreleases", ""})
	s.eventually("promoters may only decide", func(ctx context.Context) bool {
		ro := s.named("probe")
		err := admin.Create(ctx, ro)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return false
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))
		rollout := as(s.T, "promoter").Patch(ctx, ro, patch, client.DryRunAll)
		canary := as(s.T, "editor").Create(ctx, s.tried("probe", v1alpha1.CanaryTransitionAdopted), client.DryRunAll)
		return apierrors.IsForbidden(rollout) && apierrors.IsForbidden(canary)
	})
}

// tried is a CanaryRelease, which no controller serves here.
func (s *scene) tried(name string, transition v1alpha1.CanaryTransition) *v1alpha1.CanaryRelease {
	return &v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec:       v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 1, Config: "replicas: 1", Replicas: new(int32(3)), Transition: transition},
	}
}

// jobMetric is what makes the right to patch a Rollout the right to run code: a Job with any
// ServiceAccount and any Secret of the namespace.
const jobMetric = `{"spec":{"analysis":{"metrics":[{"name":"steal","provider":{"type":"job","job":{"template":{"spec":{"template":{"spec":
	{"serviceAccountName":"admin","restartPolicy":"Never","containers":[{"name":"sh","image":"busybox","command":["sh"]}]}}}}}}}]}}}`

func TestAPromoterDecidesAndChangesNothingElse(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		addPromoter(s)
		for i, test := range []struct{ does, user, patch, want string }{
			{"they decide", "promoter", `{"spec":{"control":{"action":"Abort","by":null}}}`, ""},
			{"they take a decision away", "promoter", `{"spec":{"control":null}}`, ""},
			{"they run no Job", "promoter", jobMetric, "spec.analysis" + mayOnlyDecide},
			{"nor beside a decision", "promoter", `{"spec":{"control":{"action":"Skip","by":null},"notifications":[{"name":"n","endpoint":{"url":"https://example.org"}}]}}`, "spec.notifications" + mayOnlyDecide},
			{"they pause nothing", "promoter", `{"spec":{"paused":true}}`, "spec.paused" + mayOnlyDecide},
			{"they change no step", "promoter", `{"spec":{"strategy":{"steps":[{"weight":100}]}}}`, "spec.strategy" + mayOnlyDecide},
			{"they set no finalizer", "promoter", `{"metadata":{"finalizers":["example.org/stay"]}}`, "metadata.finalizers" + mayOnlyDecide},
			{"they set no label", "promoter", `{"metadata":{"labels":{"a":"b"}}}`, "metadata.labels" + mayOnlyDecide},
			{"they set no annotation", "promoter", `{"metadata":{"annotations":{"a":"b"}}}`, "metadata.annotations" + mayOnlyDecide},
			{"an editor changes the rest", "editor", jobMetric, ""},
			{"an admin does both", "admin", `{"spec":{"paused":true,"control":{"action":"Abort","by":null}}}`, ""},
		} {
			s.Run(test.does, func(t *testing.T) {
				s := &scene{T: t, namespace: s.namespace}
				ro := s.decided(fmt.Sprintf("website%d", i))
				s.wantError(s.merge(test.user, ro, test.patch), test.want)
			})
		}
	})
}

func TestAPromoterDecidesAboutACanaryReleaseAndChangesNothingElse(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		addPromoter(s)
		const lacks = `may not decide about this release: that needs the verb "promote" on canaryreleases.serin.dev`
		for i, test := range []struct{ does, user, patch, want string }{
			{"a promoter adopts", "promoter", `{"spec":{"transition":"Adopted"}}`, ""},
			{"a promoter delegates", "promoter", `{"spec":{"delegation":{"rollout":"website"}}}`, ""},
			{"a promoter tries no other values", "promoter", `{"spec":{"config":"replicas: 2"}}`, "spec.config" + mayOnlyDecide},
			{"nor beside a decision", "promoter", `{"spec":{"transition":"Adopted","replicas":7}}`, "spec.replicas" + mayOnlyDecide},
			{"a promoter removes no field", "promoter", `{"spec":{"replicas":null}}`, "spec.replicas" + mayOnlyDecide},
			{"an editor does not adopt", "editor", `{"spec":{"transition":"Adopted"}}`, "spec.transition: user \"editor\" " + lacks},
			{"nor deprecates", "editor", `{"spec":{"transition":"Deprecated"}}`, "spec.transition: user \"editor\" " + lacks},
			{"nor delegates", "editor", `{"spec":{"delegation":{"rollout":"website"}}}`, "spec.delegation: user \"editor\" " + lacks},
			{"an editor tries other values", "editor", `{"spec":{"config":"replicas: 2"}}`, ""},
			{"an admin does both", "admin", `{"spec":{"config":"replicas: 2","transition":"Adopted"}}`, ""},
			{"the manager writes what a Rollout decided", manager, `{"spec":{"delegation":{"rollout":"website","weight":20,"by":"website"}}}`, ""},
		} {
			s.Run(test.does, func(t *testing.T) {
				s := &scene{T: t, namespace: s.namespace}
				cr := s.tried(fmt.Sprintf("try%d", i), v1alpha1.CanaryTransitionNone)
				s.create(cr)
				s.wantError(as(t, test.user).Patch(t.Context(), cr, client.RawPatch(types.MergePatchType, []byte(test.patch))), test.want)
			})
		}
	})
}

// Else an editor would put other content under a decision that a promoter made.
func TestWhatIsBeingAdoptedIsChangedByThoseWhoMayDecide(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		addPromoter(s)
		for i, test := range []struct{ user, patch, want string }{
			{"editor", `{"spec":{"config":"replicas: 2"}}`, `spec.config: user "editor" may not decide about this release`},
			{"editor", `{"spec":{"config":null,"configFrom":{"secretKeyRef":{"name":"a","key":"b"}}}}`, `spec.config: user "editor" may not decide about this release`},
			{"editor", `{"metadata":{"labels":{"a":"b"}}}`, ""},
			{"admin", `{"spec":{"config":"replicas: 2"}}`, ""},
		} {
			cr := s.tried(fmt.Sprintf("adopted%d", i), v1alpha1.CanaryTransitionAdopted)
			s.create(cr)
			s.wantError(as(s.T, test.user).Patch(s.Context(), cr, client.RawPatch(types.MergePatchType, []byte(test.patch))), test.want)
		}
	})
}

func TestADecisionAboutACanaryReleaseIsTakenAwayWithoutARight(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		addPromoter(s)
		cr := s.tried("try", v1alpha1.CanaryTransitionAdopted)
		cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "website"}
		s.create(cr)
		s.wantError(as(s.T, "editor").Patch(s.Context(), cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"transition":null,"delegation":null}}`))), "")
		if cr.Spec.Transition != v1alpha1.CanaryTransitionNone || cr.Spec.Delegation != nil {
			s.Errorf("still decided: %s", dump(cr.Spec))
		}
	})
}
