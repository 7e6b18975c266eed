// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

const (
	ownPrefix  = "serin-route-"
	rulePrefix = "serin-"
)

// ownName is the name of the VirtualService that a split without routes has.
func ownName(split string) string { return ownPrefix + split }

// ruleName is unique among the copies for one backend, within the length of a name. It says
// which split made the copy, in case that its label is lost.
func ruleName(split, source, service string) string {
	return rulePrefix + service + "-" + short(split) + "-" + short(source)
}

// short is 8 hexadecimal digits that stand for a name.
func short(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// madeFor is true for an object that the router made for a split. One that lost the label
// with the split's name is known by its own name.
func madeFor(u *unstructured.Unstructured, split string) bool {
	if name := u.GetLabels()[traffic.LabelProxy]; name != "" || !routes.IsOwn(u) {
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
