// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// Promises is what a run of the story has to keep.
type Promises struct {
	// Replicas of the website.
	Replicas int
	// Steps are the weights that v2 must pass, in this order.
	Steps []int32
	// Within is how long the whole story may take, 0 for any time.
	Within time.Duration
	// Proxy killed by the story: the connections of a proxy that is killed die with
	// it, so that failed requests are counted but not held against Serin.
	ProxyKilled bool
}

// Check returns a plain sentence for each promise that was not kept.
func (p Promises) Check(a *Account) []string {
	var broken []string
	for _, check := range []func(*Account) string{
		p.checkPromoted, p.checkSteps, p.checkPods, p.checkRolledBack, p.checkSurvivors, p.checkFailures, p.checkLoad, p.checkTime,
	} {
		if sentence := check(a); sentence != "" {
			broken = append(broken, sentence)
		}
	}
	return broken
}

func (p Promises) checkPromoted(a *Account) string {
	return checkOutcome(a, Good, serinv1alpha1.OutcomePromoted, "promoted")
}

func (p Promises) checkRolledBack(a *Account) string {
	return checkOutcome(a, Bad, serinv1alpha1.OutcomeRolledBack, "rolled back")
}

func checkOutcome(a *Account, version, want, word string) string {
	r := a.Release(version)
	switch {
	case r == nil:
		return fmt.Sprintf("%s was never applied, so it could not be %s.", version, word)
	case r.Outcome == nil:
		return fmt.Sprintf("%s was not %s; the Rollout says: %s", version, word, reasonOf(a.Last))
	case r.Outcome.Outcome != want:
		return fmt.Sprintf("%s was not %s but %s: %s", version, word, r.Outcome.Outcome, r.Outcome.Message)
	case r.SettledAt.IsZero():
		return fmt.Sprintf("%s was %s, but something was left to do; the Rollout says: %s", version, word, reasonOf(a.Last))
	default:
		return ""
	}
}

// reasonOf is the Rollout's own explanation.
func reasonOf(s Snapshot) string {
	if ready := s.Ready(); ready.Reason != "" {
		return ready.Reason + ": " + ready.Message
	}
	return "nothing yet"
}

// checkSteps: traffic moved to v2 by the declared steps, never back.
func (p Promises) checkSteps(a *Account) string {
	r := a.Release(Good)
	if r == nil || r.Outcome == nil {
		return "" // said by checkPromoted
	}
	if !slices.IsSorted(r.Weights) {
		return fmt.Sprintf("The weight of %s went back on its way: %v %%.", Good, r.Weights)
	}
	for _, step := range p.Steps {
		if !slices.Contains(r.Weights, step) {
			return fmt.Sprintf("%s was never seen with the weight of its step of %d %% in effect, only with %v %%.", Good, step, r.Weights)
		}
	}
	return ""
}

// checkPods: the pods that were tested as the canary are the Deployment's, and
// no other pod of the version was ever created.
func (p Promises) checkPods(a *Account) string {
	r := a.Release(Good)
	if r == nil || r.Outcome == nil {
		return ""
	}
	if len(r.Pods) != p.Replicas {
		return fmt.Sprintf("%d pods of %s were created; the %d of the canary would have been enough.", len(r.Pods), Good, p.Replicas)
	}
	for _, pod := range r.Pods {
		if !pod.Canary || !pod.Adopted {
			return fmt.Sprintf("Pod %s of %s did not serve first as the canary and then for the Deployment.", pod.Name, Good)
		}
	}
	return ""
}

// checkSurvivors: after the rollback, the pods of v2 still serve.
func (p Promises) checkSurvivors(a *Account) string {
	if r := a.Release(Bad); r == nil || r.Outcome == nil {
		return ""
	}
	if ready := a.Last.ready(Good); ready != p.Replicas {
		return fmt.Sprintf("After the rollback %d of %d pods of %s are ready.", ready, p.Replicas, Good)
	}
	return ""
}

// checkFailures: no request failed that v3 did not cause.
func (p Promises) checkFailures(a *Account) string {
	load := a.Last.load()
	otherwise := load.Failed() - load.Version(Bad).Failed
	if otherwise == 0 || p.ProxyKilled {
		return ""
	}
	return fmt.Sprintf("%d requests failed that %s did not cause.", otherwise, Bad)
}

// checkLoad: there was traffic to fail, and it kept its rate.
func (p Promises) checkLoad(a *Account) string {
	switch load := a.Last.load(); {
	case load.Sent == 0:
		return "The load generator reported no request, so nothing is known of failed ones."
	case a.LoadRestarts > 0:
		return "The load generator restarted, so its counts are not those of the whole story."
	case load.Skipped > 0:
		return fmt.Sprintf("The load generator could not send %d requests because too many waited for an answer.", load.Skipped)
	default:
		return ""
	}
}

func (p Promises) checkTime(a *Account) string {
	if took := a.Now.Sub(a.StartedAt); p.Within > 0 && took > p.Within {
		return fmt.Sprintf("The story took %s; at most %s was promised.", took.Round(time.Second), p.Within)
	}
	return ""
}
