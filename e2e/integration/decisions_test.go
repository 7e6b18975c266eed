// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	decisionsPolicy = release + "-decisions"
	promotersPolicy = release + "-promoters"
	canaryDecisions = release + "-canary-decisions"
	signingPolicy   = release + "-decided-by"
)

// tryDecision has the API server answer whether a decision is let in, and what becomes of it.
func (s *scene) tryDecision(ctx context.Context, by string) (*v1alpha1.Rollout, error) {
	ro := s.named("tried")
	ro.Spec.Control = decision(v1alpha1.ControlAbort, by)
	return ro, admin.Create(ctx, ro, client.DryRunAll)
}

// waitForPolicies tries a decision in the name of somebody else, and one without a
// name, until the API server has taken notice of the policies.
func (s *scene) waitForPolicies(decisions string) {
	s.Helper()
	s.eventually("the policies are in force", func(ctx context.Context) bool {
		_, forged := s.tryDecision(ctx, "somebody else")
		ro, err := s.tryDecision(ctx, "") // for some moments after the kinds were defined, none can be mutated
		return apierrors.IsForbidden(forged) && err == nil && (ro.Spec.Control.By != "") == (decisions != unsigned)
	})
}

func decision(action v1alpha1.ControlAction, by string) *v1alpha1.Control {
	return &v1alpha1.Control{Revision: "5d4f8c7b9", Action: action, StepIndex: ptr.To[int32](0), Reason: "seen", By: by}
}

// team is a namespace whose decisions are checked, with people of different rights:
// admin, editor, and the editor oncall, who may also decide about the Rollout website.
func team(t *testing.T, decisions string) *scene {
	t.Helper()
	if decisions == signed && !servesPolicies {
		decisions = byWebhook
	}
	s := newScene(t, labelled(labelDecisions, decisions))
	s.bindClusterRole("admin", "admin")
	s.bindClusterRole("editor", "edit")
	s.bindClusterRole("oncall", "edit")
	s.allow("oncall", promote("website"))
	s.waitRights("admin", may{"promote", "rollouts", ""}, may{"create", "rollouts", ""})
	s.waitRights("editor", may{"patch", "rollouts", ""})
	s.waitRights("oncall", may{"patch", "rollouts", ""}, may{"promote", "rollouts", "website"})
	s.waitForPolicies(decisions)
	return s
}

func (s *scene) named(name string) *v1alpha1.Rollout {
	ro := newRollout()
	ro.Name, ro.Namespace = name, s.namespace
	return ro
}

// decided is a Rollout about whose release the administrator of the cluster has decided.
func (s *scene) decided(name string) *v1alpha1.Rollout {
	s.Helper()
	ro := s.named(name)
	ro.Spec.Control = decision(v1alpha1.ControlPromote, "")
	s.create(ro)
	return ro
}

// merge sends a merge patch as a user.
func (s *scene) merge(user string, ro *v1alpha1.Rollout, patch string) error {
	return as(s.T, user).Patch(s.Context(), ro, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (s *scene) wantError(err error, want string) {
	s.Helper()
	switch {
	case want == "" && err != nil:
		s.Errorf("refused: %v", err)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		s.Errorf("error %v, want one with %q", err, want)
	}
}

// both runs a test with a team on clusters that sign decisions and on those that do not.
func both(t *testing.T, test func(s *scene, signed bool)) {
	t.Helper()
	t.Parallel()
	for name, decisions := range map[string]string{"where decisions are signed": signed, "where they are not": unsigned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(team(t, decisions), decisions == signed)
		})
	}
}

const (
	lacksPromote = `may not decide about this release: that needs the verb "promote" on rollouts.serin.dev "%s" in the namespace "%s"; bind the ClusterRole serin-promoter`
	forged       = `may not decide in the name of`
	notAlone     = `spec.control.by: can't be changed by itself`
)

func TestADecisionTakesTheVerbPromote(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		for i, test := range []struct {
			does, user, patch string
			refused           bool
		}{
			{"an admin decides", "admin", `{"spec":{"control":{"action":"Abort","by":null}}}`, false},
			{"an editor may not", "editor", `{"spec":{"control":{"action":"Abort","by":null}}}`, true},
			{"nor for another revision", "editor", `{"spec":{"control":{"revision":"6c","by":null}}}`, true},
			{"nor for another step", "editor", `{"spec":{"control":{"stepIndex":1,"by":null}}}`, true},
			{"nor for every step", "editor", `{"spec":{"control":{"stepIndex":null,"by":null}}}`, true},
			{"nor for another reason", "editor", `{"spec":{"control":{"reason":"x","by":null}}}`, true},
			{"nor for no reason", "editor", `{"spec":{"control":{"reason":null,"by":null}}}`, true},
			{"nor while they edit something else", "editor", `{"spec":{"paused":true,"control":{"action":"Skip","by":null}}}`, true},
			{"an editor edits beside a decision", "editor", `{"spec":{"progressDeadline":"5m"}}`, false},
			{"an editor pauses", "editor", `{"spec":{"paused":true}}`, false},
			{"an editor takes a decision away", "editor", `{"spec":{"control":null}}`, false},
			{"the right for another Rollout does not count", "oncall", `{"spec":{"control":{"action":"Abort","by":null}}}`, true},
		} {
			s.Run(test.does, func(t *testing.T) {
				s := &scene{T: t, namespace: s.namespace}
				ro := s.decided(fmt.Sprintf("website%d", i))
				want := ""
				if test.refused {
					want = fmt.Sprintf(lacksPromote, ro.Name, s.namespace)
				}
				s.wantError(s.merge(test.user, ro, test.patch), want)
			})
		}
	})
}

func TestTheRightForOneRolloutIsEnoughForIt(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	ro := s.decided("website")
	s.wantError(s.merge("oncall", ro, `{"spec":{"control":{"action":"Abort"}}}`), "")
	if ro.Spec.Control.By != "oncall" {
		t.Errorf("decided by %q", ro.Spec.Control.By)
	}
}

func TestARolloutThatIsMadeWithADecisionTakesTheVerbPromote(t *testing.T) {
	both(t, func(s *scene, signed bool) {
		plain, undecided, decided := s.named("plain"), s.named("refused"), s.named("decided")
		undecided.Spec.Control = decision(v1alpha1.ControlPromoteFull, "")
		decided.Spec.Control = decision(v1alpha1.ControlPromoteFull, "")
		s.wantError(as(s.T, "editor").Create(s.Context(), plain), "")
		s.wantError(as(s.T, "editor").Create(s.Context(), undecided), fmt.Sprintf(lacksPromote, "refused", s.namespace))
		s.wantError(as(s.T, "admin").Create(s.Context(), decided), "")
		if (decided.Spec.Control.By == "admin") != signed {
			s.Errorf("decided by %q", decided.Spec.Control.By)
		}
	})
}

func TestNobodyDecidesInTheNameOfSomebodyElse(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		for i, test := range []struct{ does, user, patch, want string }{
			{"another name", "admin", `{"spec":{"control":{"action":"Abort","by":"editor"}}}`, forged},
			{"one's own name", "admin", `{"spec":{"control":{"action":"Abort","by":"admin"}}}`, ""},
			{"a decision of somebody else made one's own", "admin", `{"spec":{"control":{"by":"admin"}}}`, notAlone},
			{"a decision of somebody else given to a third", "admin", `{"spec":{"control":{"by":"editor"}}}`, notAlone},
			{"an editor who claims a decision", "editor", `{"spec":{"control":{"by":"editor"}}}`, notAlone},
		} {
			s.Run(test.does, func(t *testing.T) {
				s := &scene{T: t, namespace: s.namespace}
				ro := s.decided(fmt.Sprintf("website%d", i))
				known := ro.Spec.Control.By
				s.wantError(s.merge(test.user, ro, test.patch), test.want)
				now := s.rolloutNamed(ro.Name).Spec.Control.By
				if want := map[bool]string{true: "admin", false: known}[test.want == ""]; now != want {
					s.Errorf("decided by %q, want %q", now, want)
				}
			})
		}
	})
}

func (s *scene) rolloutNamed(name string) *v1alpha1.Rollout {
	s.Helper()
	ro := &v1alpha1.Rollout{}
	if err := admin.Get(s.Context(), s.key(name), ro); err != nil {
		s.Fatal(err)
	}
	return ro
}

func TestADecisionIsSignedByWhoeverMadeItLast(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	ro := s.named("website")
	ro.Spec.Control = decision(v1alpha1.ControlPromote, "")
	s.wantError(as(t, "admin").Create(t.Context(), ro), "")
	for _, step := range []struct{ user, patch, by string }{
		{"editor", `{"spec":{"paused":true}}`, "admin"},
		{"editor", `{"spec":{"control":{"by":null}}}`, "admin"},
		{"oncall", `{"spec":{"control":{"stepIndex":1}}}`, "oncall"},
		{"admin", `{"spec":{"control":{"action":"Abort","by":"oncall"}}}`, "admin"},
	} {
		s.wantError(s.merge(step.user, ro, step.patch), "")
		if ro.Spec.Control.By != step.by {
			t.Errorf("after %s by %s: decided by %q, want %q", step.patch, step.user, ro.Spec.Control.By, step.by)
		}
	}
}

// Names of service accounts can be longer than the field that holds them.
func TestADecisionIsSignedWithAsMuchOfANameAsFits(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	long := "system:serviceaccount:" + s.namespace + ":" + strings.Repeat("é", 253)
	s.bindClusterRole(long, "admin")
	s.waitRights(long, may{"promote", "rollouts", ""})
	ro := s.named("website")
	ro.Spec.Control = decision(v1alpha1.ControlPromote, "")
	s.wantError(as(t, long).Create(t.Context(), ro), "")
	if by := ro.Spec.Control.By; by != string([]rune(long)[:256]) {
		t.Errorf("decided by %q", by)
	}
}

func TestTheOperatorNeedsNoRightToWorkOnADecision(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		operator := "system:serviceaccount:" + operatorSpace + ":" + release
		ro := s.decided("website")
		s.wantError(s.merge(operator, ro, `{"metadata":{"finalizers":["serin.dev/rollout"]}}`), "")
		changed := ro.DeepCopy()
		changed.Spec.Control.Action = v1alpha1.ControlAbort
		changed.Status.ObservedGeneration = ro.Generation
		s.wantError(as(s.T, operator).Status().Update(s.Context(), changed), "")
		now := s.rollout()
		if now.Spec.Control.Action != v1alpha1.ControlPromote || now.Status.ObservedGeneration != ro.Generation {
			s.Errorf("after a write of the status: %s", dump(now))
		}
		s.wantError(s.merge(operator, ro, `{"spec":{"control":{"action":"Abort","by":null}}}`), fmt.Sprintf(lacksPromote, "website", s.namespace))
		s.wantError(s.merge(operator, ro, `{"metadata":{"finalizers":null}}`), "")
	})
}

// The schema is checked after a decision is signed.
func TestBadInputIsLeftForTheSchemaToRefuse(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	for name, control := range map[string]string{
		"a word": "Promote", "a list": "[Promote]", "no revision": "{action: Promote}",
		"no such action": "{action: Go, revision: 5d4f8c7b9}", "a name that is a number": "{action: Promote, revision: 5d4f8c7b9, by: 7}",
	} {
		t.Run(name, func(t *testing.T) {
			err := dryRunIn(t.Context(), s.namespace, smallest+"  control: "+control+"\n")
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.control") {
				t.Errorf("error %v, want an invalid spec.control", err)
			}
		})
	}
}

func TestNullIsNoDecision(t *testing.T) {
	both(t, func(s *scene, _ bool) {
		objects, err := decode([]byte(smallest + "  control: null\n"))
		if err != nil {
			s.Fatal(err)
		}
		objects[0].SetNamespace(s.namespace)
		s.wantError(as(s.T, "editor").Create(s.Context(), objects[0]), "")
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/control","value":null}]`))
		s.wantError(as(s.T, "editor").Patch(s.Context(), s.rollout(), patch), "")
		if ro := s.rollout(); ro.Spec.Control != nil {
			s.Errorf("control is %+v", ro.Spec.Control)
		}
	})
}

// The API server checks the types of a policy's expressions and writes into its
// status what it doubts.
func TestTheExpressionsAreOfTheRightTypes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{decisionsPolicy, promotersPolicy, canaryDecisions, rightsPolicy, splitRightsPolicy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, neverAfter, true, func(ctx context.Context) (bool, error) {
				err := admin.Get(ctx, types.NamespacedName{Name: name}, policy)
				return policy.Status.TypeChecking != nil && policy.Status.ObservedGeneration == policy.Generation, err
			})
			if err != nil {
				t.Fatalf("never checked: %v\n%s", err, dump(policy.Status))
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
			}
		})
	}
}
