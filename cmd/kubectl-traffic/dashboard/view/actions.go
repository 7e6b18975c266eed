// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// What a user can do about a Rollout beside the decisions of spec.control.
const (
	Pause  = "Pause"
	Resume = "Resume"
	Undo   = "Undo"
)

// Action is a button.
type Action struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	// Disabled says why the action is not possible, or "".
	Disabled string `json:"disabled,omitempty"`
	// Confirm asks whether the user means it, and names the revision.
	Confirm string `json:"confirm,omitempty"`
	// Revision and Step, counted from 1, are those that the question is about: the action
	// is refused when they are others by then.
	Revision string `json:"revision"`
	Step     int32  `json:"step,omitempty"`
	// TakesReason is whether a reason is kept in the history.
	TakesReason bool `json:"takesReason,omitempty"`
}

// Rights are those of the viewer on one Rollout and its workload.
type Rights struct {
	User                                                             string
	Promote, Patch, Update, PatchDeployment, GetReplicaSet, ReadOnly bool
	// Unknown is whether the cluster has not said all of them.
	Unknown bool
}

// decisions are the buttons for spec.control, with their labels and questions, which name the
// revision or its step.
var decisions = []struct {
	action                v1alpha1.ControlAction
	label, question, says string
	step                  bool
}{
	{v1alpha1.ControlPromote, "Promote", "Promote %s?", "The step ends as soon as the analysis passes. Its hold and its wait for approval end now.", true},
	{v1alpha1.ControlSkip, "Skip step", "Skip %s?", "The step ends now, whether or not there is enough evidence.", true},
	{v1alpha1.ControlPromoteFull, "Promote fully", "Promote %s fully?", "All remaining steps are skipped: the revision gets all traffic and becomes stable, whatever the evidence.", false},
	{v1alpha1.ControlAbort, "Abort", "Abort %s?", "All traffic goes to the stable version, then the pods of this revision are removed.", false},
	{v1alpha1.ControlRetry, "Retry", "Retry %s?", "It is released again from the first step, with new evidence.", false},
}

// MakeActions are the buttons of a Rollout for a viewer.
func MakeActions(ro *v1alpha1.Rollout, r Rights) []Action {
	list := make([]Action, 0, len(decisions)+3)
	for _, d := range decisions {
		a := Action{Name: string(d.action), Label: d.label, Revision: revision(ro.Status.Canary), TakesReason: true}
		object := "revision " + a.Revision
		if s := ro.Status.Step; d.step && s != nil {
			a.Step = s.Index + 1
			object = fmt.Sprintf("step %s of revision %s", s.Summary, a.Revision)
		}
		// A decision that was made before can be made again with another reason.
		_, err := rolloutview.Decide(ro, rolloutview.Wish{Action: d.action, Reason: "\x00"})
		a.close(r.whyNot(ro, "promote", r.Promote && r.Patch), err, fmt.Sprintf(d.question, object)+" "+d.says)
		list = append(list, a)
	}
	return append(list, pausing(ro, r), resuming(ro, r), undoing(ro, r))
}

// close enables the action unless the viewer has no right to it or it is not possible.
func (a *Action) close(denied string, err error, confirm string) {
	switch {
	case denied != "":
		a.Disabled = denied
	case err != nil:
		a.Disabled = Sentence(err.Error())
	default:
		a.Confirm = confirm
	}
}

// whyNot says which right about a Rollout a user lacks, or "".
func (r Rights) whyNot(ro *v1alpha1.Rollout, verb string, has bool) string {
	return r.lacks(verb, has, "Rollout "+ro.Name, ro.Namespace, "rollouts.serin.dev")
}

func (r Rights) lacks(verb string, has bool, object, namespace, resource string) string {
	switch {
	case r.ReadOnly:
		return "The dashboard was started with --read-only. To decide, start it without that flag, or use kubectl traffic."
	case r.Unknown:
		return "The cluster has not said what you may do. The page asks again by itself."
	case has:
		return ""
	}
	who := "You"
	if r.User != "" {
		who = "The user " + r.User
	}
	return fmt.Sprintf("%s may not %s the %s in the namespace %s: ask for a role with the verbs %q and %q for %q.",
		who, verb, object, namespace, verb, "patch", resource)
}

// mayPause is whether the admission policy of the chart lets the user change more than decisions.
func (r Rights) mayPause() bool { return r.Patch && (r.Update || !r.Promote) }

func pausing(ro *v1alpha1.Rollout, r Rights) Action {
	a := Action{Name: Pause, Label: "Pause", Revision: revision(ro.Status.Canary)}
	var err error
	if ro.Spec.Paused {
		err = fmt.Errorf("the Rollout %s is paused already", ro.Name)
	}
	a.close(r.whyNot(ro, "update", r.mayPause()), err, fmt.Sprintf("Pause %s? No step begins or ends, and traffic stays where it is. A bad version is still rolled back.", released(ro)))
	return a
}

func resuming(ro *v1alpha1.Rollout, r Rights) Action {
	a := Action{Name: Resume, Label: "Resume", Revision: revision(ro.Status.Canary)}
	var err error
	if !ro.Spec.Paused {
		err = fmt.Errorf("the Rollout %s is not paused", ro.Name)
	}
	a.close(r.whyNot(ro, "update", r.mayPause()), err, fmt.Sprintf("Resume %s? Steps begin and end again.", released(ro)))
	return a
}

// released is what a Rollout releases, for a question.
func released(ro *v1alpha1.Rollout) string {
	if canary := revision(ro.Status.Canary); canary != "" {
		return "the release of revision " + canary
	}
	return "all releases of the Rollout " + ro.Name + ", whose stable revision is " + orNone(revision(ro.Status.Stable))
}

func undoing(ro *v1alpha1.Rollout, r Rights) Action {
	to, err := rolloutview.UndoTo(ro, "")
	a := Action{Name: Undo, Label: "Undo", Revision: to}
	if err == nil && ro.Status.Canary == nil {
		err = fmt.Errorf("the Deployment %s has the template of the stable revision %s", ro.Spec.WorkloadRef.Name, to)
	}
	denied := r.whyNot(ro, "update", true)
	if denied == "" && (!r.PatchDeployment || !r.GetReplicaSet) {
		denied = fmt.Sprintf("Undo changes the Deployment %s: ask for a role with the verb \"patch\" for \"deployments.apps\" and \"get\" for \"replicasets.apps\" in the namespace %s.", ro.Spec.WorkloadRef.Name, ro.Namespace)
	}
	a.close(denied, err, fmt.Sprintf("Put the template of revision %s back into the Deployment %s? Where the Deployment comes from Git, revert the commit there instead.", to, ro.Spec.WorkloadRef.Name))
	return a
}

func orNone(text string) string {
	if text == "" {
		return "not known yet"
	}
	return text
}

// Sentence makes an error a sentence of its own.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
