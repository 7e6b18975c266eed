// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/judgement"
	"github.com/serin-dev/serin/traffic"
)

// outage is so long that the control plane takes every node for lost when it goes on.
const outage = 150 * time.Second

// TestLongOutageOfTheControlPlane stops the API server in the middle of a release. Afterwards
// the node controller takes every node for lost, until it has heard from it: the pods of both
// versions, of the proxies and of the control are unready at once. The release goes on where it
// was, and nothing fails but in the moments in which the control fails too.
func TestLongOutageOfTheControlPlane(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-outage", "long")
		s.playOutage(func() func() { return func() {} })
		s.endLoad()
		s.logLost()
		s.judge()
	})
}

// TestLongProxiesRestartWithoutAControlPlane kills the containers of all managers of Serin while the
// API server stands still, and then those of all proxies and of the control at once. Until the API
// server goes on, nothing fails but while the control does, and the new containers serve the
// weights that were live. The release then goes on, too.
func TestLongProxiesRestartWithoutAControlPlane(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-alone", "long")
		s.record.After = s.playOutage(func() func() {
			managers := s.containerProcesses(stage.SystemNamespace, managerLabels)
			pods := append(
				s.containerProcesses(s.namespace, client.MatchingLabels{traffic.LabelProxy: siteName}),
				s.containerProcesses(s.namespace, client.MatchingLabels{"app": controlName})...)
			return func() {
				s.restart(managers...)
				s.restart(pods...)
			}
		})
		s.logLost()
		s.judge()
	})
}

// playOutage stops the API server at a weight of 50. What is prepared before is done meanwhile. It
// returns what was counted until the API server went on.
func (s *site) playOutage(prepare func() (meanwhile func())) (last generator.Report) {
	s.t.Helper()
	s.requireLocal()
	s.controlSelects, s.record.Disrupted = true, true
	s.startWebsite("[{weight: 50, hold: 45s}]", "replicas: 3")
	s.selectControl(0)
	s.begin()
	loadAddress := s.address("load", 80)

	s.setImage("v2", "v1")
	s.awaitWeight(50)
	meanwhile := prepare()
	goOn := s.stopAPIServer()
	meanwhile()
	first := s.directReport(loadAddress)
	s.pause(outage)
	last = s.directReport(loadAddress)
	goOn()
	s.record.Spans = append(s.record.Spans, judgement.NewSpan("weight 50 without the API server", split(50), first, last))

	s.awaitAfterOutage("the end of the release", func(ro *v1alpha1.Rollout) bool {
		return readyReason(ro) == v1alpha1.ReasonStable || readyReason(ro) == v1alpha1.ReasonRolledBack
	})
	s.requireEndedPromoted()
	s.awaitConnections()
	s.measure("after the release", map[string]float64{"v2": 1})
	s.selectControl(0)
	s.requireAsBefore(false)
	return last
}

// stopAPIServer has the API server stand still until goOn, or the end of the attempt. It keeps
// its connections, as one whose machine stands still does: no client is refused.
func (s *site) stopAPIServer() (goOn func()) {
	s.t.Helper()
	s.requireLocal()
	programs, err := cluster.Status(s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, program := range programs {
		if program.Name != "kube-apiserver" || !program.Running {
			continue
		}
		s.t.Cleanup(func() { _ = syscall.Kill(program.PID, syscall.SIGCONT) }) // as a rule it runs by then
		s.t.Log(time.Now().UTC().Format(timeOfDay), "stop the API server")
		if err := syscall.Kill(program.PID, syscall.SIGSTOP); err != nil {
			s.t.Fatal(err)
		}
		return func() {
			s.t.Log(time.Now().UTC().Format(timeOfDay), "the API server goes on")
			if err := syscall.Kill(program.PID, syscall.SIGCONT); err != nil {
				s.t.Fatal(err)
			}
			s.awaitAPIServer()
		}
	}
	s.t.Fatal("the API server is not among the programs of the cluster")
	return nil
}

// awaitAPIServer returns when the API server answers: connections that were made before it stood
// still may be lost.
func (s *site) awaitAPIServer() {
	s.t.Helper()
	answered := 0
	s.poll("an answer of the API server", func() bool {
		limited, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		answered++
		if s.core.Discovery().RESTClient().Get().AbsPath("/readyz").Do(limited).Error() != nil {
			answered = 0
		}
		return answered > 3
	})
}

// awaitAfterOutage is await, for an API server that may be too busy for some answers.
func (s *site) awaitAfterOutage(what string, done func(*v1alpha1.Rollout) bool) {
	s.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(s.t.Context(), look, 2*stateLimit, true, func(ctx context.Context) (bool, error) {
		ro := &v1alpha1.Rollout{}
		if err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: siteName}, ro); err != nil {
			s.t.Log(time.Now().UTC().Format(timeOfDay), err)
			return false, nil
		}
		if message := readyMessage(ro); message != last {
			last = message
			s.t.Log(time.Now().UTC().Format(timeOfDay), last)
		}
		return done(ro), nil
	})
	if err != nil {
		s.t.Fatalf("wait for %s: %v; the Rollout says: %s", what, err, last)
	}
}

// pause lets time pass while the cluster stands still, which nothing else tells.
func (s *site) pause(d time.Duration) {
	s.t.Helper()
	select {
	case <-s.t.Context().Done():
		s.t.Fatal(s.t.Context().Err())
	case <-time.After(d):
	}
}

// logLost says how much failed at the website, and at the control.
func (s *site) logLost() {
	s.t.Helper()
	target, control := s.record.Lost()
	s.t.Logf("%d of %d requests failed, and %d of %d of the control", target.Failed, target.All, control.Failed, control.All)
}

// labelTurn tells the pods of the control apart where its Service selects one of them.
const labelTurn = "turn"

// selectControl has the Service of the control select the pod of a turn, so that a pod that the
// control plane takes for unready is no endpoint of it.
func (s *site) selectControl(turn int) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"selector":{"app":%q,%q:"%d"}}}`, controlName, labelTurn, turn)
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		service := &corev1.Service{}
		service.Namespace, service.Name = s.namespace, controlName
		return s.api.Patch(ctx, service, client.RawPatch(types.MergePatchType, patch)) == nil, nil
	})
	if err != nil && s.t.Context().Err() == nil {
		s.t.Errorf("change the selector of the control: %v", err)
	}
}

// labelControl gives each pod of the control its turn.
func (s *site) labelControl(pods []corev1.Pod) {
	s.t.Helper()
	for turn := range pods {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, labelTurn, turn)
		if err := s.api.Patch(s.t.Context(), &pods[turn], client.RawPatch(types.MergePatchType, patch)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// directReport asks the load generator without the API server.
func (s *site) directReport(address string) (report generator.Report) {
	s.t.Helper()
	s.poll("the load generator's report", func() bool {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+address+"/report", http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		report = generator.Report{}
		return json.NewDecoder(answer.Body).Decode(&report) == nil
	})
	return report
}
