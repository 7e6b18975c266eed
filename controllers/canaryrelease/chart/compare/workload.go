// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/controllers/workload"
)

const (
	deploymentKind  = "Deployment"
	statefulSetKind = "StatefulSet"
	daemonSetKind   = "DaemonSet"
)

// unstableWhy ends the sentence about what is not rendered twice alike.
const unstableWhy = "is rendered differently each time, because the chart uses a random value or the time: have the chart keep the value (lookup), or set it"

// deployment makes a canary of a Deployment whose template changes.
func (c *comparison) deployment(k key) {
	if !c.both(k) {
		c.delay(k)
		return
	}
	now, okNow := as[appsv1.Deployment](c.current[k])
	next, okNext := as[appsv1.Deployment](c.candidate[k])
	if !okNow || !okNext {
		c.refuse("%s is not a valid Deployment: correct the chart or config", k)
		return
	}
	if !apiequality.Semantic.DeepEqual(now.Spec.Selector, next.Spec.Selector) {
		c.refuse("%s: config changes its spec.selector, which no upgrade can do: leave the labels of the selector alone", k)
		return
	}
	read := c.reads(k, &next.Spec.Template.Spec)
	if workload.SameTemplate(&now.Spec.Template, &next.Spec.Template) {
		c.sameTemplate(k, read)
		return
	}
	if k.namespace != c.in.Namespace {
		c.refuse("%s is in namespace %s, but a canary can only be made in the release's namespace: upgrade without a canary", k, k.namespace)
		return
	}
	if reasons := c.unstable(k, next, read); len(reasons) > 0 {
		c.result.Refused = append(c.result.Refused, reasons...)
		return
	}
	if reasons := c.canNotRunTwice(k, next); len(reasons) > 0 {
		c.result.Refused = append(c.result.Refused, reasons...)
		return
	}
	c.canary(k, next, read)
}

// reads are the changed contents that pods read.
func (c *comparison) reads(k key, spec *corev1.PodSpec) []reference {
	if k.namespace != c.in.Namespace {
		return nil
	}
	return slices.DeleteFunc(references(spec), func(r reference) bool {
		_, changes := c.changes[r]
		return !changes
	})
}

// sameTemplate is for pods that stay while what they read changes: an upgrade
// replaces it under all of them at once, which no canary can try before.
func (c *comparison) sameTemplate(k key, read []reference) {
	for _, r := range read {
		if c.changes[r].unstable {
			c.refuse("%s, which pods of %s read, %s", r, k, unstableWhy)
			continue
		}
		c.refuse("%s reads %s, which config changes, but the pod template stays the same, so an upgrade would change it under running pods: "+
			"put a checksum of it in an annotation of the template", k, r)
	}
	c.delay(k)
}

// unstable tells what of a canary's pods is not rendered twice alike.
func (c *comparison) unstable(k key, next *appsv1.Deployment, read []reference) []string {
	var reasons []string
	for _, r := range read {
		if c.changes[r].unstable {
			reasons = append(reasons, r.String()+", which pods of "+k.String()+" read, "+unstableWhy)
		}
	}
	var twice *appsv1.Deployment
	if again := c.again[k]; again != nil {
		twice, _ = as[appsv1.Deployment](again)
	}
	if twice == nil || !workload.SameTemplate(&next.Spec.Template, &twice.Spec.Template) {
		reasons = append(reasons, k.String()+" "+unstableWhy)
	}
	return reasons
}

// canary puts the names of copies in the template.
func (c *comparison) canary(k key, next *appsv1.Deployment, read []reference) {
	for _, r := range read {
		if why := c.copy(r); why != "" {
			c.refuse("%s, which pods of %s read, %s", r, k, why)
			return
		}
	}
	template := next.Spec.Template.DeepCopy()
	rename(&template.Spec, func(r reference) string {
		if name, copied := c.copied[r]; copied && slices.Contains(read, r) {
			return name
		}
		return r.name
	})
	c.result.Canaries = append(c.result.Canaries, Canary{Name: k.name, Template: *template, Rolls: len(read) > 0})
	c.rest(k)
}

// copy makes the copy of a content, once for all who read it. It returns why it can't.
func (c *comparison) copy(r reference) string {
	if c.copied[r] != "" {
		return ""
	}
	next := c.changes[r].content
	if next.kind == corev1.SecretTypeServiceAccountToken {
		return "is the token of a service account, which can't be copied: mount a projected token"
	}
	name, err := copyName(c.in.Key, r, next)
	if err != nil {
		return "can't be encoded: correct the chart or config"
	}
	object, err := copyOf(r, c.in.Namespace, name, next)
	if err != nil {
		return "can't be copied: correct the chart or config"
	}
	c.copied[r] = name
	c.result.Copies = append(c.result.Copies, object)
	return ""
}

// rest reports what else changes in a Deployment with a canary.
func (c *comparison) rest(k key) {
	now, next := withoutTemplate(c.current[k]), withoutTemplate(c.candidate[k])
	if !same(now, next) {
		c.result.Later = append(c.result.Later, k.String()+" (outside of its template)")
	}
}

func withoutTemplate(o *unstructured.Unstructured) *unstructured.Unstructured {
	bare := o.DeepCopy()
	unstructured.RemoveNestedField(bare.Object, "spec", "template")
	return bare
}

// otherWorkload refuses changes of pods that a canary would need a second set of:
// identities and volumes of a StatefulSet, nodes of a DaemonSet.
func (c *comparison) otherWorkload(k key) {
	if !c.both(k) {
		c.delay(k)
		return
	}
	now, okNow := as[otherWorkload](c.current[k])
	next, okNext := as[otherWorkload](c.candidate[k])
	if !okNow || !okNext {
		c.refuse("%s is not a valid %s: correct the chart or config", k, k.kind)
		return
	}
	if !workload.SameTemplate(&now.Spec.Template, &next.Spec.Template) {
		c.refuse("%s: config changes its pods, and a %s has no second set of pods for a canary: leave it out of config, or upgrade without a canary", k, k.kind)
		return
	}
	if what := immutable(c.current[k], c.candidate[k]); what != "" {
		c.refuse("%s: config changes its %s, which no upgrade can do: leave it alone", k, what)
		return
	}
	c.sameTemplate(k, c.reads(k, &next.Spec.Template.Spec))
}

// otherWorkload is what StatefulSets and DaemonSets have in common.
type otherWorkload struct {
	Spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

func immutable(now, next *unstructured.Unstructured) string {
	fields := map[string][2]any{}
	for _, field := range []string{"selector", "serviceName", "volumeClaimTemplates", "podManagementPolicy"} {
		a, _, _ := unstructured.NestedFieldNoCopy(now.Object, "spec", field)
		b, _, _ := unstructured.NestedFieldNoCopy(next.Object, "spec", field)
		fields["spec."+field] = [2]any{a, b}
	}
	return changed(fields)
}

// changed names the fields whose values differ.
func changed(fields map[string][2]any) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if pair := fields[name]; !apiequality.Semantic.DeepEqual(pair[0], pair[1]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// job refuses what the API server would: then the adoption would stop half-way.
func (c *comparison) job(k key) {
	if c.both(k) {
		now, okNow := as[batchv1.Job](c.current[k])
		next, okNext := as[batchv1.Job](c.candidate[k])
		if !okNow || !okNext {
			c.refuse("%s is not a valid Job: correct the chart or config", k)
			return
		}
		if !workload.SameTemplate(&now.Spec.Template, &next.Spec.Template) {
			c.refuse("%s: config changes its pods, which no upgrade can do: make it a hook, or give it a name that changes with the revision", k)
			return
		}
	}
	c.delay(k)
}
