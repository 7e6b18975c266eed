// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// The labels of each object that a router makes, in addition to traffic.LabelProxy, which
// says whose it is.
const (
	LabelManager, manager     = "app.kubernetes.io/managed-by", "serin"
	LabelComponent, component = "app.kubernetes.io/component", "route"
)

// Labels are those of the objects that a router makes for a split.
func Labels(split string) map[string]string {
	return map[string]string{traffic.LabelProxy: split, LabelManager: manager, LabelComponent: component}
}

// IsOwn is true for an object that a router made, for whichever split: a user may have
// removed one of its labels.
func IsOwn(o client.Object) bool {
	labels := o.GetLabels()
	return labels[traffic.LabelProxy] != "" || labels[LabelManager] == manager && labels[LabelComponent] == component
}

// Labelled is true when an object has all labels of those that a router makes.
func Labelled(o client.Object, split string) bool {
	labels := o.GetLabels()
	for key, value := range Labels(split) {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// SelectedBy is true for a split that a router of this name serves.
func SelectedBy(split *splitv1.TrafficSplit, router string, isDefault bool) bool {
	name := traffic.RouterName(split, "")
	return name == router || name == "" && isDefault
}

// Annotate sets annotations of an object, and removes those without a value.
func Annotate(u *unstructured.Unstructured, annotations map[string]string) {
	all := u.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range annotations {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	if len(all) == 0 {
		all = nil
	}
	u.SetAnnotations(all)
}

// Describe is what is the same for every object that exists.
func Describe(u *unstructured.Unstructured) traffic.Object {
	object := traffic.Object{
		GroupVersionKind: u.GroupVersionKind(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Generation: u.GetGeneration(), Created: u.GetCreationTimestamp().Time, Condition: traffic.ObjectCurrent,
	}
	if u.GetDeletionTimestamp() != nil {
		object.Condition = traffic.ObjectTerminating
	}
	return object
}

// CheckName refuses a split whose name can't be a label of its routes.
func CheckName(split traffic.Split) []traffic.Problem {
	if len(split.Name) <= validation.LabelValueMaxLength {
		return nil
	}
	return []traffic.Problem{traffic.Unsupported("metadata.name: has more than %d characters and can't be a label of routes; choose a shorter name", validation.LabelValueMaxLength)}
}

// Digest of a value that came from JSON, in 16 hexadecimal digits. Two objects with the
// same fields have the same.
func Digest(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // what came from JSON can be written as JSON
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}
