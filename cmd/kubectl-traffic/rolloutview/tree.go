// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xlab/treeprint"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Snapshot is a Rollout with what runs its versions.
type Snapshot struct {
	Rollout     *v1alpha1.Rollout
	ReplicaSets []appsv1.ReplicaSet
	Pods        []corev1.Pod
}

// branch is a node of the tree with the cells beside it.
type branch struct {
	name     string
	cells    []string
	children []*branch
}

// Tree is the snapshot as a tree in a table, with sentences below.
func Tree(s Snapshot) string {
	root := &branch{name: "Rollout " + s.Rollout.Name, cells: []string{State(s.Rollout), stepCell(s.Rollout), ""}}
	stableWeight, canaryWeight := Weights(s.Rollout)
	for _, v := range []struct {
		role, weight string
		version      *v1alpha1.VersionStatus
	}{{v1alpha1.RoleStable, stableWeight, s.Rollout.Status.Stable}, {v1alpha1.RoleCanary, canaryWeight, s.Rollout.Status.Canary}} {
		if v.version != nil {
			root.children = append(root.children, s.version(v.role, v.weight, v.version))
		}
	}
	var out bytes.Buffer
	w := printers.GetNewTabWriter(&out)
	fmt.Fprintln(w, "NAME\tSTATUS\tTRAFFIC\tREADY")
	lines := strings.Split(strings.TrimSuffix(root.draw(), "\n"), "\n")
	for i, cells := range root.rows() {
		fmt.Fprintln(w, strings.Join(append([]string{lines[i]}, cells...), "\t"))
	}
	if err := w.Flush(); err != nil {
		panic(err) // a buffer takes everything
	}
	return trimLines(out.String()) + "\n" + sentences(s.Rollout)
}

// stepCell stands above the traffic that the step has brought.
func stepCell(ro *v1alpha1.Rollout) string {
	if ro.Status.Step == nil {
		return ""
	}
	return "step " + ro.Status.Step.Summary
}

func (s Snapshot) version(role, weight string, v *v1alpha1.VersionStatus) *branch {
	name := role + " " + v.Revision
	if v.Service != "" {
		name += " (Service " + v.Service + ")"
	}
	b := &branch{name: name, cells: []string{verdict(s.Rollout, role), weight, fmt.Sprintf("%d/%d", v.Ready, v.Replicas)}}
	for _, set := range s.ReplicaSets {
		if set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == v.Revision {
			b.children = append(b.children, s.replicaSet(&set))
		}
	}
	return b
}

// verdict is what was decided about the canary.
func verdict(ro *v1alpha1.Rollout, role string) string {
	d := ro.Status.Decision
	if role != v1alpha1.RoleCanary || d == nil || d.Revision != ro.Status.Canary.Revision {
		return ""
	}
	if d.Action == v1alpha1.ActionRollBack {
		return "RolledBack"
	}
	return "Promoted"
}

func (s Snapshot) replicaSet(set *appsv1.ReplicaSet) *branch {
	b := &branch{name: "ReplicaSet " + set.Name, cells: []string{"", "", fmt.Sprintf("%d/%d", set.Status.ReadyReplicas, set.Status.Replicas)}}
	for i := range s.Pods {
		if metav1.IsControlledBy(&s.Pods[i], set) {
			b.children = append(b.children, podBranch(&s.Pods[i]))
		}
	}
	return b
}

func podBranch(p *corev1.Pod) *branch {
	ready := 0
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
	}
	return &branch{name: "Pod " + p.Name, cells: []string{PodState(p), "", fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers))}}
}

// PodState is the phase of a pod, or why a container of it does not run.
func PodState(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if waits := c.State.Waiting; waits != nil && waits.Reason != "" {
			return waits.Reason
		}
	}
	return string(p.Status.Phase)
}

// draw draws the branches with the names.
func (b *branch) draw() string {
	tree := treeprint.NewWithRoot(b.name)
	b.addTo(tree)
	return tree.String()
}

func (b *branch) addTo(tree treeprint.Tree) {
	for _, child := range b.children {
		child.addTo(tree.AddBranch(child.name))
	}
}

// rows are the cells of the branch and of all below, in the order in which they are drawn.
func (b *branch) rows() [][]string {
	rows := [][]string{b.cells}
	for _, child := range b.children {
		rows = append(rows, child.rows()...)
	}
	return rows
}

// sentences say below the tree what goes on.
func sentences(ro *v1alpha1.Rollout) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Status:    %s\n", oneLine(Sentence(ro)))
	if a := ro.Status.Analysis; a != nil {
		fmt.Fprintf(&b, "Analysis:  %s: %s\n", a.Verdict, oneLine(a.Message))
		if a.Evidence != "" {
			fmt.Fprintf(&b, "Evidence:  %s of %s needed to roll back; canary %d of %d requests failed, stable %d of %d\n",
				a.Evidence, a.Threshold, a.CanaryFailures, a.CanaryRequests, a.StableFailures, a.StableRequests)
		}
	}
	if next := ro.Status.NextTransitionTime; next != nil {
		fmt.Fprintf(&b, "Next:      %s at the earliest\n", next.UTC().Format(time.RFC3339))
	}
	return b.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
