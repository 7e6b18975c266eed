// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/traffic"
)

// Labels of every object that the router makes, beside the one with the name of the split.
const (
	labelManager, manager     = "app.kubernetes.io/managed-by", "serin"
	labelComponent, component = "app.kubernetes.io/component", "route"
)

const (
	ownPrefix  = "serin-route-"
	rulePrefix = "serin-"
)

// ownName is the name of the VirtualService that a split without routes has.
func ownName(split string) string { return ownPrefix + split }

// ruleName tells the copies for one backend apart, within the length of a name. It says
// which split made the copy, in case that its label is lost.
func ruleName(split, source, service string) string {
	return rulePrefix + service + "-" + short(split) + "-" + short(source)
}

// short is 8 hexadecimal digits that stand for a name.
func short(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// ownLabels are those of every object that the router makes.
func ownLabels(split string) map[string]string {
	return map[string]string{traffic.LabelProxy: split, labelManager: manager, labelComponent: component}
}

// isOwn is true for an object that the router made, for whichever split.
func isOwn(u *unstructured.Unstructured) bool {
	labels := u.GetLabels()
	return labels[traffic.LabelProxy] != "" || labels[labelManager] == manager && labels[labelComponent] == component
}

// madeFor is true for an object that the router made for a split. One that lost the label
// with the split's name is known by its own name.
func madeFor(u *unstructured.Unstructured, split string) bool {
	if name := u.GetLabels()[traffic.LabelProxy]; name != "" || !isOwn(u) {
		return name == split
	}
	return digestInName(u) == short(split)
}

// digestInName is short for the split that an object has its name from; "" when it has
// none that the router gives.
func digestInName(u *unstructured.Unstructured) string {
	name := u.GetName()
	if u.GetKind() == kindVirtualService {
		if split, found := strings.CutPrefix(name, ownPrefix); found {
			return short(split)
		}
		return ""
	}
	parts := strings.Split(name, "-")
	if len(parts) < 4 || !strings.HasPrefix(name, rulePrefix) {
		return ""
	}
	return parts[len(parts)-2]
}

// labelled is true when an object has all labels of those that the router makes.
func labelled(u *unstructured.Unstructured, split string) bool {
	labels := u.GetLabels()
	for key, value := range ownLabels(split) {
		if labels[key] != value {
			return false
		}
	}
	return true
}
