// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// notDumped are kinds that tell of the past (events), that the control plane derives from
// other objects in an older form (endpoints), and leases.
var notDumped = []string{"events", "endpoints", "leases"}

// A release changes what is in objects of changed kinds, and those of replaced kinds come and go
// with it. So do Secrets of Helm, which has one for each revision. An AnalysisResult with the
// recordings of its releases stays as long as its Rollout.
var (
	replaced     = []string{"Pod", "ReplicaSet", "AnalysisResult"}
	changed      = append([]string{"Deployment", "Rollout", "HorizontalPodAutoscaler", "ConfigMap", "Secret"}, replaced...)
	helmRevision = "Secret/sh.helm.release."
)

// ofRelease tells whether a difference is one that releases make.
func ofRelease(name, now string, had, has bool) bool {
	kind, _, _ := strings.Cut(name, "/")
	if had && has {
		return slices.Contains(changed, kind)
	}
	return (slices.Contains(replaced, kind) || strings.HasPrefix(name, helmRevision)) && !strings.Contains(now, "serin-proxy-")
}

// generations count the writes of a release to what is restored.
var generations = regexp.MustCompile(`(?m)^.*[gG]eneration: \d+\n`)

// times are fields that tell when something became as it is. A probe that a machine was too slow
// for once leaves no other trace.
var times = []string{"lastTransitionTime", "lastUpdateTime", "lastProbeTime"}

func removeTimes(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range times {
			delete(value, name)
		}
		for _, part := range value {
			removeTimes(part)
		}
	case []any:
		for _, part := range value {
			removeTimes(part)
		}
	}
}

// begin notes every object of the namespace, for requireAsBefore.
func (s *site) begin() {
	s.t.Helper()
	s.before = s.dump()
}

// requireAsBefore waits until the namespace is as it was, since proxies that are out of the path
// serve what they have to the end, and notes what is left over. Where a version was released
// since, the contents of what that replaces may differ, but for what Serin made.
func (s *site) requireAsBefore(strict bool) {
	s.t.Helper()
	_ = wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) {
		s.record.Leftovers = leftovers(s.before, s.dump(), strict)
		return len(s.record.Leftovers) == 0, nil
	}) // what is left by then is judged
}

// leftovers are the differences between two dumps.
func leftovers(before, after map[string]string, strict bool) (list []string) {
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		old, had := before[name]
		now, has := after[name]
		if !strict {
			old, now = generations.ReplaceAllString(old, ""), generations.ReplaceAllString(now, "")
		}
		switch {
		case !strict && ofRelease(name, now, had, has):
		case !had:
			list = append(list, name+" is left over")
		case !has:
			list = append(list, name+" is gone")
		case old != now:
			list = append(list, fmt.Sprintf("%s has changed (-before +after):\n%s", name, cmp.Diff(old, now)))
		}
	}
	return list
}

// dump is every object of the site's namespace as YAML by its kind and name, without what
// each write changes.
func (s *site) dump() map[string]string {
	s.t.Helper()
	lists, err := discovery.ServerPreferredNamespacedResources(s.core.Discovery())
	if err != nil {
		s.t.Fatal(err)
	}
	api, err := dynamic.NewForConfig(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.HasPrefix(group.Group, "metrics.") {
			continue
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(notDumped, resource.Name) {
				s.dumpKind(api.Resource(group.WithResource(resource.Name)), resource.Kind, all)
			}
		}
	}
	return all
}

func (s *site) dumpKind(kind dynamic.NamespaceableResourceInterface, name string, all map[string]string) {
	s.t.Helper()
	objects, err := kind.Namespace(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("list %s: %v", name, err)
	}
	for _, object := range objects.Items {
		if name == "EndpointSlice" {
			// Which addresses are in them is the control plane's business.
			all[name+" of "+object.GetLabels()["kubernetes.io/service-name"]] = ""
			continue
		}
		all[name+"/"+object.GetName()] = s.text(object)
	}
}

// text is an object as YAML without what each write changes.
func (s *site) text(object unstructured.Unstructured) string {
	s.t.Helper()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	removeTimes(object.Object)
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func TestLeftovers(t *testing.T) {
	before := map[string]string{"Service/web": "spec: a\n", "HTTPRoute/web": "generation: 1\nspec: a\n", "Pod/web-1": "v1", "Deployment/web": "spec: a\n"}
	with := func(changes ...string) map[string]string {
		after := maps.Clone(before)
		for i := 0; i < len(changes); i += 2 {
			after[changes[i]] = changes[i+1]
		}
		return after
	}
	without := func(name string, changes ...string) map[string]string {
		after := with(changes...)
		delete(after, name)
		return after
	}
	for _, test := range []struct {
		name   string
		after  map[string]string
		strict bool
		want   int
	}{
		{"nothing is left of nothing", before, true, 0},
		{"a RoleBinding is left", with("RoleBinding/serin-proxy-web", ""), true, 1},
		{"a RoleBinding is left after a release", with("RoleBinding/serin-proxy-web", ""), false, 1},
		{"a budget is left after a release", with("PodDisruptionBudget/serin-proxy-web", ""), false, 1},
		{"a Deployment of proxies is left after a release", with("Deployment/serin-proxy-web", "name: serin-proxy-web"), false, 1},
		{"a Deployment of a canary is left after a release", with("Deployment/web-canary", "name: web"), false, 1},
		{"an autoscaler of a canary is left after a release", with("HorizontalPodAutoscaler/web-canary", ""), false, 1},
		{"a copy of a Secret is left after a release", with("Secret/web-canary", ""), false, 1},
		{"a revision of Helm is there after a release", with("Secret/sh.helm.release.v1.web.v2", ""), false, 0},
		{"a pod of a proxy is left after a release", with("Pod/serin-proxy-web-1", "name: serin-proxy-web-1"), false, 1},
		{"a Deployment has changed in a release", with("Deployment/web", "spec: b\n"), false, 0},
		{"a Deployment is gone after a release", without("Deployment/web"), false, 1},
		{"a recording is there after a release", with("AnalysisResult/web", ""), false, 0},
		{"a recording is left", with("AnalysisResult/web", ""), true, 1},
		{"endpoints are left after a release", with("EndpointSlice of web-canary", ""), false, 1},
		{"a Service has changed", with("Service/web", "spec: b\n"), true, 1},
		{"a Service has changed in a release", with("Service/web", "spec: b\n"), false, 1},
		{"a Service is gone", without("Service/web"), false, 1},
		{"a pod is another one", without("Pod/web-1", "Pod/web-2", "v2"), true, 2},
		{"a pod is another one after a release", without("Pod/web-1", "Pod/web-2", "v2"), false, 0},
		{"a route was written", with("HTTPRoute/web", "generation: 3\nspec: a\n"), true, 1},
		{"a route was written in a release", with("HTTPRoute/web", "generation: 3\nspec: a\n"), false, 0},
		{"a route was changed in a release", with("HTTPRoute/web", "generation: 3\nspec: b\n"), false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := leftovers(before, test.after, test.strict); len(got) != test.want {
				t.Errorf("got %q, want %d of them", got, test.want)
			}
		})
	}
}
