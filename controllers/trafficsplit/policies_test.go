// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
)

// policyScenarios are lives of a split among NetworkPolicies, and in a mesh.
var policyScenarios = map[string]func(w *world){
	"a namespace denies by default": func(w *world) {
		w.policy("deny", "{podSelector: {}, policyTypes: [Ingress, Egress]}")
		w.policy("web", "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}")
		w.policy("other/clients", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}")
		w.step("a split is created", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(makeSplit(100, 0))
		})
		w.step("its proxies are ready and confirm", func() { w.deploy(); w.ready(); w.confirm() })
		w.step("the endpoints follow", func() { w.endpoints() })
		leave(w)
	},
	"policies change while a split is live": func(w *world) {
		w.policy("deny", "{podSelector: {}, policyTypes: [Ingress, Egress]}")
		w.policy("other/clients", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}")
		w.goLive()
		w.step("another actor opens a policy of the proxies, and deletes the others", func() {
			for i, p := range w.madePolicies() {
				if i > 0 {
					w.must(w.api.Delete(w.ctx(), &p))
					continue
				}
				p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
				w.must(w.api.Update(w.ctx(), &p))
			}
		})
		w.step("clients of another namespace may send to everything", func() { w.deletePolicy("other", "clients") })
		w.step("a policy lets some clients reach one version only", func() {
			w.policy("first", "{podSelector: {matchLabels: {version: '1'}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}")
		})
		w.step("it is deleted", func() { w.deletePolicy(namespace, "first") })
	},
	"the finalizer of a split among policies is removed by hand": func(w *world) {
		w.policy("web", "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}")
		w.goLive()
		w.step("the finalizer is removed by hand, and the split is gone", func() {
			split := w.split()
			split.Finalizers = nil
			w.must(w.api.Update(w.ctx(), split))
			w.must(w.api.Delete(w.ctx(), split))
		})
		w.step("the endpoints follow, and the proxies stop", func() { w.endpoints(); w.deploy() })
		w.step("the proxies are gone", func() { w.stopped() })
	},
	"no policy but the one that closes the port of counters": func(w *world) {
		w.restricted = true
		comeIntoEffect(w)
		w.step("another actor deletes the policy, and it is made again", func() {
			w.closed = false
			for _, p := range w.madePolicies() {
				w.must(w.api.Delete(w.ctx(), &p))
			}
		})
	},
	"an operator that closes the port of counters follows one that does not": func(w *world) {
		w.goLive()
		w.step("the operator is upgraded", func() { w.restricted = true })
		w.step("the weights are changed", func() { w.weights(50, 50) })
		w.step("the proxies follow", func() { w.confirm() })
		leave(w)
	},
	"no policy lets clients reach the proxies as they reach the app": func(w *world) {
		w.policy("web", "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}")
		w.policy("rest", "{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}, policyTypes: [Ingress], ingress: [{}]}")
		w.step("a split is created", func() {
			w.create(shop()...)
			w.endpoints()
			w.create(makeSplit(100, 0))
		})
		w.step("the policy leaves the proxies out", func() {
			w.deletePolicy(namespace, "rest")
		})
	},
	"the pods of the app are in a mesh": func(w *world) {
		w.step("a split is created", func() {
			w.create(shop()...)
			for _, name := range []string{"app-1", "app-2"} {
				pod := &corev1.Pod{}
				w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: name}, pod))
				pod.Spec.Containers = []corev1.Container{{Name: "istio-proxy"}}
				w.must(w.api.Update(w.ctx(), pod))
			}
			w.endpoints()
			w.create(makeSplit(100, 0))
		})
	},
}

// policy makes a NetworkPolicy of a user.
func (w *world) policy(name, spec string) {
	w.t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	if where, what, found := strings.Cut(name, "/"); found {
		p.Namespace, p.Name = where, what
	}
	w.must(yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	w.create(p)
}

func (w *world) deletePolicy(namespace, name string) {
	w.t.Helper()
	w.must(w.api.Delete(w.ctx(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
}

// applyPolicy writes an applied NetworkPolicy as a whole: the fake API server gives each a
// status, and then refuses it, since the kind has none.
func applyPolicy(ctx context.Context, c client.Client, config runtime.ApplyConfiguration) (applied bool, err error) {
	text, err := json.Marshal(config)
	if err != nil {
		return false, err
	}
	p := &networkingv1.NetworkPolicy{}
	if err := json.Unmarshal(text, p); err != nil || p.Kind != "NetworkPolicy" {
		return false, nil //nolint:nilerr // another kind
	}
	if p.ResourceVersion == "" {
		return true, c.Create(ctx, p)
	}
	return true, c.Update(ctx, p)
}

// staysClosed checks that the port of counters is not opened again while there are proxies.
func (w *world) staysClosed() {
	w.t.Helper()
	there := slices.ContainsFunc(w.madePolicies(), func(p networkingv1.NetworkPolicy) bool { return p.Name == traffic.ProxyName("web") })
	if w.closed && !there && len(w.proxies()) > 0 {
		w.t.Errorf("the port of counters is open again:\n%s", strings.Join(w.log, "\n"))
	}
	w.closed = w.restricted && there
}

// networkPolicies are all that there are.
func (w *world) networkPolicies() []networkingv1.NetworkPolicy {
	w.t.Helper()
	var list networkingv1.NetworkPolicyList
	w.must(w.api.List(w.ctx(), &list))
	return list.Items
}

// madePolicies are those that the controller made.
func (w *world) madePolicies() []networkingv1.NetworkPolicy {
	w.t.Helper()
	return slices.DeleteFunc(w.networkPolicies(), func(p networkingv1.NetworkPolicy) bool { return p.Labels[traffic.LabelProxy] == "" })
}
