// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// notDumped are kinds that tell of the past (events), that the control plane derives from
// other objects with the time at which it did (endpoints), and figures.
var notDumped = []string{"events", "endpoints", "endpointslices", "leases"}

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

// dump is every object of the site's namespace as YAML by its kind and name, without what
// each write changes.
func (s *site) dump() map[string]string {
	s.t.Helper()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.cluster.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: s.cluster.Context}).ClientConfig()
	if err != nil {
		s.t.Fatal(err)
	}
	lists, err := discovery.ServerPreferredNamespacedResources(s.core.Discovery())
	if err != nil {
		s.t.Fatal(err)
	}
	api, err := dynamic.NewForConfig(config)
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
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		removeTimes(object.Object)
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			s.t.Fatal(err)
		}
		all[name+"/"+object.GetName()] = string(text)
	}
}
