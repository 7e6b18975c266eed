// SPDX-License-Identifier: Apache-2.0

package rolloutinit

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Draft is what a Rollout is written from.
type Draft struct {
	Deployment *appsv1.Deployment
	Service    *corev1.Service
	Traffic    rolloutview.Traffic
	Proposal   rolloutview.Proposal
	// Given is whether the user said what Traffic is. Unmeasured says why it was assumed; ""
	// when it was measured or given.
	Given      bool
	Unmeasured string
	// Wanted is the tolerance that was asked for.
	Wanted string
}

// longestName is how long the name of a Rollout may be.
const longestName = 52

// Name of the Rollout: that of the Deployment, cut where it is too long.
func (d Draft) Name() string {
	return strings.TrimRight(d.Deployment.Name[:min(len(d.Deployment.Name), longestName)], "-.")
}

// AssumedTraffic is what a Service is taken to receive when that is not known.
func AssumedTraffic() rolloutview.Traffic {
	return rolloutview.Traffic{PerSecond: 20, FailureRate: 0.001}
}

var manifest = template.Must(template.New("rollout").Parse(`# A Rollout for the Deployment {{.Deployment.Name}}: every change of its pod template is released step by step.
#
{{range .Notes}}# {{.}}
{{end}}apiVersion: serin.dev/v1alpha1
kind: Rollout
metadata:
  name: {{.Name}}
  namespace: {{.Deployment.Namespace}}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: {{.Deployment.Name}}}
  service: {{.Service.Name}}
  strategy:
    steps:
{{- range .Steps}}
    # {{.Comment}}
    - {weight: {{.Weight}}, hold: {{.Hold}}}
{{- end}}
  analysis:
    # How many percentage points more often than stable the canary may fail.
    tolerance: {{.Proposal.Tolerance}}
`))

type writtenStep struct {
	Weight        int32
	Hold, Comment string
}

// Write is the Rollout as YAML with comments.
func Write(d Draft) (string, error) {
	steps := make([]writtenStep, 0, len(d.Proposal.Steps))
	for _, s := range d.Proposal.Steps {
		steps = append(steps, writtenStep{s.Weight, hold(s.Hold), d.comment(s)})
	}
	var out strings.Builder
	err := manifest.Execute(&out, struct {
		Draft
		Notes []string
		Steps []writtenStep
	}{d, d.notes(), steps})
	return out.String(), err
}

// comment says what a step detects, and how many pods it takes.
func (d Draft) comment(s rolloutview.ProposedStep) string {
	pods := fmt.Sprintf("%d of %d pods", share(s.Weight, d.replicas()), d.replicas())
	if s.MinDetectableEffect == "" {
		return fmt.Sprintf("Detects nothing by itself: %s, about %s requests to the canary.", pods, d.requests(s))
	}
	return fmt.Sprintf("Detects a canary that fails %s more often than stable: %s, about %s requests to the canary.", s.MinDetectableEffect, pods, d.requests(s))
}

func (d Draft) requests(s rolloutview.ProposedStep) string {
	return strconv.FormatFloat(d.Traffic.PerSecond*s.Hold.Seconds()*float64(s.Weight)/100, 'f', 0, 64)
}

func (d Draft) replicas() int32 {
	if d.Deployment.Spec.Replicas == nil {
		return 1
	}
	return *d.Deployment.Spec.Replicas
}

func share(weight, replicas int32) int32 { return (weight*replicas + 99) / 100 }

// notes say what was measured and what was assumed.
func (d Draft) notes() []string {
	var list []string
	traffic := fmt.Sprintf("%s requests/s, of which %s %% fail", number(d.Traffic.PerSecond), number(100*d.Traffic.FailureRate))
	switch {
	case d.Given:
		list = append(list, fmt.Sprintf("Given by --rps and --failure-rate: the Service %s receives %s.", d.Service.Name, traffic))
	case d.Unmeasured == "":
		list = append(list, fmt.Sprintf("Measured: the Service %s receives %s.", d.Service.Name, traffic))
	default:
		list = append(list, fmt.Sprintf("Assumed: the Service %s receives %s. The traffic was not measured:", d.Service.Name, traffic),
			"  "+d.Unmeasured+".", "  Give yours with --rps and --failure-rate.")
	}
	if d.Proposal.Raised {
		list = append(list, fmt.Sprintf("Raised: this traffic does not show a difference of %s within an hour, so that the tolerance is %s.", d.Wanted, d.Proposal.Tolerance))
	}
	if !d.Proposal.Detects() {
		list = append(list, "Too little traffic to compare versions by it: hold the release to metrics of your own (spec.analysis.metrics),",
			"  or let a user decide (until: Manual in a step).")
	}
	list = append(list, "Assumed: the traffic stays as it is. A step with less of it waits for more requests.")
	if ports := unnamed(d.Service); len(ports) > 0 {
		list = append(list, fmt.Sprintf("Assumed: port %s of the Service, which has no name and no appProtocol, speaks HTTP.", strings.Join(ports, ", ")))
	}
	if d.replicas() == 0 {
		list = append(list, "The Deployment has no replicas: nothing is released before it has.")
	}
	return append(list, fmt.Sprintf("Next: kubectl traffic rollout lint -f FILE, then kubectl apply -f FILE, then kubectl traffic rollout plan %s.", d.Name()))
}

// number has three digits, and none behind the point where there are more before it.
func number(n float64) string {
	if n >= 100 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// hold is a duration as the API takes it, without parts that are zero.
func hold(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}
