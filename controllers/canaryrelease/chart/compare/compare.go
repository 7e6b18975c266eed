// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Input is all that a comparison depends on.
type Input struct {
	// Namespace of the release.
	Namespace string
	// Current is the manifest on record, without hooks.
	Current []*unstructured.Unstructured
	// First and Second are the candidate, rendered twice: what differs is made of
	// random values or of the time.
	First, Second []*unstructured.Unstructured
	// Claims has the access modes of the PersistentVolumeClaims that exist.
	Claims map[string][]corev1.PersistentVolumeAccessMode
	// Key goes into each name of a content, so that contents can't be guessed from it.
	Key []byte
}

// Canary is a Deployment whose pods change; see chart.Canary.
type Canary struct {
	Name     string
	Template corev1.PodTemplateSpec
	Rolls    bool
}

// Result is what Compare finds; see chart.Proposal.
type Result struct {
	Digest   string
	Canaries []Canary
	Copies   []*unstructured.Unstructured
	Later    []string
	Refused  []string
}

// Compare decides what of a change a canary can show. When anything is refused there
// are no canaries at all: half of a change is another change.
func Compare(in Input) Result {
	c := &comparison{
		in:      in,
		current: index(in.Current, in.Namespace), candidate: index(in.First, in.Namespace), again: index(in.Second, in.Namespace),
		changes: map[reference]change{}, copied: map[reference]string{},
	}
	all := keys(c.current, c.candidate, c.again)
	for _, k := range all {
		c.content(k)
	}
	for _, k := range all {
		c.object(k)
	}
	c.later()
	return c.finish()
}

type comparison struct {
	in                        Input
	current, candidate, again map[key]*unstructured.Unstructured
	// changes are the ConfigMaps and Secrets whose content is new.
	changes map[reference]change
	// copied has the copies' names.
	copied map[reference]string
	result Result
}

type change struct {
	content  content
	unstable bool
}

func (c *comparison) refuse(format string, args ...any) {
	c.result.Refused = append(c.result.Refused, fmt.Sprintf(format, args...))
}

// delay says what only an adoption does.
func (c *comparison) delay(k key) {
	switch {
	case c.current[k] == nil:
		c.result.Later = append(c.result.Later, k.String()+" (new)")
	case c.candidate[k] == nil:
		c.result.Later = append(c.result.Later, k.String()+" (deleted)")
	case !same(c.current[k], c.candidate[k]):
		c.result.Later = append(c.result.Later, k.String())
	}
}

// both tells whether an object is there before and after.
func (c *comparison) both(k key) bool { return c.current[k] != nil && c.candidate[k] != nil }

func isContent(k key) bool {
	return k.group == "" && (k.kind == configMapKind || k.kind == secretKind)
}

// content notes a ConfigMap or a Secret of the namespace whose content changes.
func (c *comparison) content(k key) {
	if !isContent(k) || k.namespace != c.in.Namespace || c.candidate[k] == nil {
		return
	}
	next, ok := contentOf(c.candidate[k])
	if !ok {
		c.refuse("%s is not a valid object: correct the chart or config", k)
		return
	}
	if c.current[k] != nil {
		now, ok := contentOf(c.current[k])
		if ok && now.same(next) {
			return
		}
		if ok && now.immutable {
			c.refuse("%s is immutable, but config changes its content, which no upgrade can do: give it a name that changes with the content", k)
		}
	}
	c.changes[reference{k.kind, k.name}] = change{content: next, unstable: !c.rendersAgain(k, next)}
}

// rendersAgain reports whether the second rendering gave an object the same content.
func (c *comparison) rendersAgain(k key, want content) bool {
	if c.again[k] == nil {
		return false
	}
	twice, ok := contentOf(c.again[k])
	return ok && twice.same(want)
}

// object sorts out one object by its kind.
func (c *comparison) object(k key) {
	switch {
	case k.group == "apps" && k.kind == deploymentKind:
		c.deployment(k)
	case k.group == "apps" && (k.kind == statefulSetKind || k.kind == daemonSetKind):
		c.otherWorkload(k)
	case k.group == "batch" && k.kind == "Job":
		c.job(k)
	case k.group == "" && k.kind == "Service":
		c.service(k)
	case isContent(k):
		// They are sorted out when it is known who reads them.
	default:
		c.delay(k)
	}
}

// service refuses what would change where clients end up at the time of the
// adoption, or would take the Service from under the split.
func (c *comparison) service(k key) {
	if !c.both(k) {
		if c.candidate[k] == nil {
			c.refuse("%s would be deleted, and its clients would find no pod: upgrade without a canary", k)
			return
		}
		c.delay(k)
		return
	}
	now, okNow := as[corev1.Service](c.current[k])
	next, okNext := as[corev1.Service](c.candidate[k])
	if !okNow || !okNext {
		c.refuse("%s is not a valid Service: correct the chart or config", k)
		return
	}
	if what := changed(map[string][2]any{
		"spec.selector": {now.Spec.Selector, next.Spec.Selector}, "spec.ports": {now.Spec.Ports, next.Spec.Ports},
		"spec.clusterIP": {now.Spec.ClusterIP, next.Spec.ClusterIP},
	}); what != "" {
		c.refuse("%s: config changes its %s, and clients can't be split between the old and the new one: change it in an upgrade of its own", k, what)
		return
	}
	c.delay(k)
}

// later adds contents that no canary reads.
func (c *comparison) later() {
	for _, k := range keys(c.current, c.candidate) {
		if _, copied := c.copied[reference{k.kind, k.name}]; isContent(k) && !copied {
			c.delay(k)
		}
	}
	slices.Sort(c.result.Later)
}

func (c *comparison) finish() Result {
	r := c.result
	if len(r.Canaries) == 0 && len(r.Refused) == 0 {
		r.Refused = []string{nothing(r.Later)}
	}
	digest, err := digestOf(c.in.Key, r.Canaries, r.Copies)
	if err != nil {
		r.Refused = append(r.Refused, "the candidate can't be encoded: correct the chart or config")
	}
	if len(r.Refused) > 0 {
		slices.Sort(r.Refused)
		return Result{Later: r.Later, Refused: slices.Compact(r.Refused)}
	}
	r.Digest = digest
	return r
}

func nothing(later []string) string {
	if len(later) == 0 {
		return "config changes nothing that runs"
	}
	return "config changes no pods of a Deployment, only " + strings.Join(later, ", ") + ": upgrade without a canary"
}
