// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// AnnotationPin on a root Service or a preview Service records, as JSON, which keys Serin
// added to its selector, and for which TrafficSplit or Rollout. Writes that add or remove
// keys are FieldManager's: what keeps them through the writes of others lets those through.
const AnnotationPin = "serin.dev/pin"

// AnnotationSplit on a route says which TrafficSplit's backends it names in place of
// the root Service.
const AnnotationSplit = "serin.dev/split"

// Pin narrows a root Service to the pods of one backend, so that requests which
// reach it past a gateway or mesh meet one version only; without any, all requests do.
type Pin struct {
	// Split that asks for it; "" for none.
	Split string `json:"split,omitempty"`
	// Rollout that asks for it, of its preview Service; "" for none.
	Rollout string `json:"rollout,omitempty"`
	// Since is when that Rollout asked for the keys.
	Since *metav1.Time `json:"since,omitempty"`
	// Keys that are added to the selector.
	Keys map[string]string `json:"keys"`
}

// PinOf is the pin that is in force on a Service: the recorded keys that its selector
// still has. A record that can't be read, or of which nothing is left, is no pin.
func PinOf(service *corev1.Service) Pin {
	var pin Pin
	text, found := service.Annotations[AnnotationPin]
	if !found || json.Unmarshal([]byte(text), &pin) != nil {
		return Pin{}
	}
	for k, v := range pin.Keys {
		if live, found := service.Spec.Selector[k]; !found || live != v {
			delete(pin.Keys, k)
		}
	}
	return pin
}

// SetPin replaces the pin of a Service; one without keys removes it.
func SetPin(service *corev1.Service, pin Pin) error {
	selector := DeclaredSelector(service)
	if proxies, found := service.Spec.Selector[LabelProxy]; found {
		selector[LabelProxy] = proxies
	}
	delete(service.Annotations, AnnotationPin)
	if len(pin.Keys) > 0 {
		text, err := json.Marshal(pin)
		if err != nil {
			return fmt.Errorf("record the pin: %w", err)
		}
		if service.Annotations == nil {
			service.Annotations = map[string]string{}
		}
		service.Annotations[AnnotationPin] = string(text)
		maps.Copy(selector, pin.Keys)
	}
	service.Spec.Selector = selector
	return nil
}

// PinKeys are the keys that narrow root to the pods of a backend: those that the
// backend selects by and the root's owner does not declare. It fails when the backend
// does not select among the pods of root.
func PinKeys(root, backend *corev1.Service) (map[string]string, error) {
	declared, of := DeclaredSelector(root), DeclaredSelector(backend)
	keys := map[string]string{}
	for k, v := range of {
		if declared[k] != v {
			keys[k] = v
		}
	}
	if len(keys) == 0 || !labels.SelectorFromSet(declared).Matches(labels.Set(of)) {
		return nil, fmt.Errorf("Service %q does not select some of the pods of Service %q, so requests to %q can't be kept to it; "+ //nolint:staticcheck // a kind
			"give its selector all labels of %q and one more, or name another Service", backend.Name, root.Name, root.Name, root.Name)
	}
	return keys, nil
}

// Chosen is the backend that gets all requests of a split; "" when several have a weight.
func Chosen(split *splitv1.TrafficSplit) string {
	chosen := ""
	for _, b := range split.Spec.Backends {
		switch {
		case b.Weight == 0:
		case chosen != "":
			return ""
		default:
			chosen = b.Service
		}
	}
	return chosen
}

// Holder is the name of the split that a root Service serves at present, or "": the
// one whose proxies it selects, or that pinned it.
func Holder(root *corev1.Service) string {
	if name := root.Spec.Selector[LabelProxy]; name != "" {
		return name
	}
	return PinOf(root).Split
}

// DeclaredSelector is a Service's selector without the keys that Serin adds: what
// its owner declares.
func DeclaredSelector(service *corev1.Service) map[string]string {
	pinned := PinOf(service).Keys
	selector := make(map[string]string, len(service.Spec.Selector))
	for k, v := range service.Spec.Selector {
		if _, pin := pinned[k]; k != LabelProxy && !pin {
			selector[k] = v
		}
	}
	return selector
}
