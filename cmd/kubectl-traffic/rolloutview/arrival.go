// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Wanted is the version that is waited for: of a revision, of an image, or when both are
// empty, the one that the workload asks for.
type Wanted struct{ Revision, Image string }

// Workload is what a Rollout releases, read before the Rollout. Deployment is nil where
// it releases anything else.
type Workload struct {
	Deployment  *appsv1.Deployment
	ReplicaSets []appsv1.ReplicaSet
}

// Arrival is how far a version has come.
type Arrival struct {
	// Revision of the version; "" while it is not known.
	Revision string
	// Stable is whether the version is stable, and Missed whether it can't become so without a
	// change of the workload or a user's decision. Refused is whether its release can't begin, by
	// a status that may be older than what was repaired.
	Stable, Missed, Refused bool
	// Message says what is, in a sentence.
	Message string
}

// Arrived tells how far a version has come. A Rollout that is Ready for another version is
// never an answer.
func Arrived(ro *v1alpha1.Rollout, w Workload, wanted Wanted) Arrival {
	a := Arrival{Revision: wanted.Revision}
	if a.Revision == "" {
		var waits string
		if a.Revision, waits = requested(ro, w, wanted); a.Revision == "" {
			a.Message = waits
			return a
		}
	}
	a.Stable, a.Missed = isStable(ro, w, a.Revision), missed(ro, w, a.Revision)
	a.Refused = !a.Stable && refused(ro)
	a.Message = a.sentence(ro)
	return a
}

// requested is the revision of the version that the workload asks for, or what is waited for
// until there is one.
func requested(ro *v1alpha1.Rollout, w Workload, wanted Wanted) (revision, waits string) {
	d := w.Deployment
	switch {
	case d == nil:
		return "", "The workload is not a Deployment: name the revision to wait for with --revision."
	case wanted.Image != "" && !runs(&d.Spec.Template.Spec, wanted.Image):
		return "", fmt.Sprintf("No container of the Deployment %s has the image %s yet.", d.Name, wanted.Image)
	}
	if revision := w.asks(); revision != "" {
		return revision, ""
	}
	return "", fmt.Sprintf("The release of the Deployment %s has not begun: no ReplicaSet has its template. %s", d.Name, Sentence(ro))
}

// runs reports whether a container has an image.
func runs(pod *corev1.PodSpec, image string) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool { return c.Image == image })
}

// sameTemplate compares as the Deployment controller does: but for the hash.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(a, b)
}

// isStable reports whether the version is stable and nothing is left to do for that: the
// Rollout is ready, or has begun with the next version.
func isStable(ro *v1alpha1.Rollout, w Workload, revision string) bool {
	s := ro.Status
	if s.Stable == nil || s.Stable.Revision != revision {
		return false
	}
	ready, _ := Settled(ro)
	// A release of another version may be one that the workload asks no more for.
	return ready || s.Step != nil && s.Canary != nil && s.Canary.Revision != revision && w.asks() != revision
}

// refused reports whether the Rollout says that nothing goes on, and releases nothing.
func refused(ro *v1alpha1.Rollout) bool {
	s := ro.Status
	return s.ObservedGeneration >= ro.Generation && s.Canary == nil && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)
}

// missed reports whether the version was rolled back, or another took its place.
func missed(ro *v1alpha1.Rollout, w Workload, revision string) bool {
	s := ro.Status
	if s.ObservedGeneration < ro.Generation || s.Stable != nil && s.Stable.Revision == revision {
		return false // a retry or a repaired spec is not observed yet
	}
	if s.Canary != nil && s.Canary.Revision == revision {
		return s.Decision != nil && s.Decision.Revision == revision && s.Decision.Action == v1alpha1.ActionRollBack ||
			meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)
	}
	if w.Deployment != nil {
		return w.asks() != revision
	}
	return slices.ContainsFunc(s.History, func(h v1alpha1.HistoryEntry) bool { return h.Revision == revision })
}

// asks is the revision of the version that the Deployment asks for; "" while it has none.
func (w Workload) asks() string {
	for i := range w.ReplicaSets {
		if rs := &w.ReplicaSets[i]; w.Deployment != nil && sameTemplate(&rs.Spec.Template, &w.Deployment.Spec.Template) {
			return rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return ""
}

func (a Arrival) sentence(ro *v1alpha1.Rollout) string {
	switch {
	case a.Stable:
		return fmt.Sprintf("Revision %s is stable.", a.Revision)
	case a.Missed:
		return fmt.Sprintf("Revision %s does not become stable: %s", a.Revision, Sentence(ro))
	}
	return Line(ro)
}
