// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func podsOf(t *testing.T, text string) *ProxyPods {
	t.Helper()
	pods := &ProxyPods{}
	if err := yaml.UnmarshalStrict([]byte(text), pods); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return pods
}

func TestHowProxiesCanNotRun(t *testing.T) {
	many := func(field, entry string, n int) string {
		var entries []string
		for i := range n {
			entries = append(entries, fmt.Sprintf(entry, i))
		}
		text := strings.Join(entries, ", ")
		if strings.HasPrefix(entry, "k") {
			return field + ": {" + text + "}"
		}
		return field + ": [" + text + "]"
	}
	for text, says := range map[string]string{
		"replicas: 0":                                 "replicas: 0 is not from 1 to 1000",
		"replicas: 1001":                              "replicas: 1001 is not from 1 to 1000",
		"maxReplicas: 0":                              "maxReplicas: 0 is not from 1 to 1000",
		"maxReplicas: 1001":                           "maxReplicas: 1001 is not from 1 to 1000",
		"{replicas: 4, maxReplicas: 3}":               "replicas: 4 is above maxReplicas, 3",
		"resources: {limits: {gpu: 1}}":               `resources.limits: "gpu" is not a resource of a proxy; name cpu`,
		"resources: {requests: {gpu: 1}}":             `resources.requests: "gpu" is not a resource of a proxy`,
		"resources: {limits: {memory: -1, cpu: -1}}":  "resources.limits: cpu is below 0; correct it",
		"resources: {requests: {cpu: -1m}}":           "resources.requests: cpu is below 0",
		"resources: {requests: {cpu: 0}}":             "resources.requests: cpu is 0; correct it, or remove it",
		"resources: {limits: {cpu: 0m}}":              "resources.limits: cpu is 0",
		"resources: {limits: {memory: 0}}":            "resources.limits: memory is 0",
		"resources: {limits: {ephemeral-storage: 0}}": "resources.limits: ephemeral-storage is 0",
		"resources: {requests: {memory: 2, cpu: 2}, limits: {memory: 1, cpu: 1}}": "resources: requests more cpu than its limit; correct one",
		"priorityClassName: A":                                  `priorityClassName: "A" is not the name`,
		"priorityClassName: system-node-critical":               `priorityClassName: "system-node-critical" is for parts of the cluster; name another class`,
		`nodeSelector: {"a b": c}`:                              `nodeSelector: "a b": "c" is not a label`,
		`nodeSelector: {a: "b c"}`:                              `nodeSelector: "a": "b c" is not a label`,
		many("nodeSelector", "k%d: v", 17):                      "nodeSelector: has 17 entries, more than 16",
		`annotations: {serin.dev/service-account-uid: "1"}`:     `annotations: only Serin sets "serin.dev/service-account-uid"`,
		`annotations: {Example.com/a: b}`:                       `annotations: the domain of "Example.com/a" has upper case; write it in lower case`,
		`annotations: {"": "1"}`:                                `annotations: "" is not the key of an annotation`,
		`annotations: {a: ` + strings.Repeat("x", 4097) + `}`:   `annotations: the value of "a" has more than 4096 characters`,
		many("annotations", "k%d: v", 17):                       "annotations: has 17 entries, more than 16",
		"imagePullSecrets: [A]":                                 `imagePullSecrets: "A" is not the name of a Secret`,
		"imagePullSecrets: [a, b, a]":                           `imagePullSecrets: "a" is there twice`,
		many("imagePullSecrets", "s%d", 9):                      "imagePullSecrets: has 9 entries, more than 8",
		"tolerations: [{}]":                                     "tolerations[0]: without a key the operator has to be Exists",
		"tolerations: [{key: a, operator: In}]":                 `tolerations[0]: the operator "In" is neither Equal nor Exists`,
		"tolerations: [{key: a}, {operator: Exists, value: b}]": "tolerations[1]: the operator Exists takes no value",
		"tolerations: [{key: a, effect: Never}]":                `tolerations[0]: the effect "Never" is not one of NoSchedule`,
		"tolerations: [{key: a, tolerationSeconds: 1}]":         "tolerations[0]: tolerationSeconds takes the effect NoExecute",
		`tolerations: [{key: "a b", value: c}]`:                 `tolerations[0]: "a b" is not the key of a taint`,
		`tolerations: [{key: a, value: "b c"}]`:                 `tolerations[0]: "b c" is not the value of a taint`,
		many("tolerations", "{key: a%d}", 17):                   "tolerations: has 17 entries, more than 16",
	} {
		for range 20 { // the same one of several
			if err := podsOf(t, text).Check(); err == nil || !strings.HasPrefix(err.Error(), says) {
				t.Fatalf("%.60s: %v, want %q", text, err, says)
			}
		}
	}
}

func TestHowProxiesCanRun(t *testing.T) {
	for _, text := range []string{
		"{}",
		"{replicas: 1000, maxReplicas: 1000}",
		"resources: {requests: {cpu: 2, memory: 1Gi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}",
		"resources: {requests: {memory: 0, ephemeral-storage: 0}}",
		"priorityClassName: systematic.example.com",
		`nodeSelector: {node-role.kubernetes.io/edge: ""}`,
		"tolerations: [{operator: Exists}, {key: a}, {key: example.com/a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 0}]",
		"annotations: {notserin.dev/a: b}",
		"annotations: {a: " + strings.Repeat("ä", 4096) + "}",
		"imagePullSecrets: [a.b, a]",
	} {
		if err := podsOf(t, text).Check(); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	if err := (*ProxyPods)(nil).Check(); err != nil {
		t.Error(err)
	}
}

func TestPodsOfProxiesAreReadAsTheyWereWritten(t *testing.T) {
	want := podsOf(t, `{replicas: 3, maxReplicas: 20, resources: {requests: {cpu: 0.5}, limits: {memory: 1Gi}}, priorityClassName: high, nodeSelector: {pool: edge},
  tolerations: [{key: edge, operator: Exists, effect: NoSchedule}], annotations: {c: d}, imagePullSecrets: [e]}`)
	split := &TrafficSplit{}
	SetRouting(split, Routing{ProxyPods: want})
	got, err := RoutingOf(split)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.ProxyPods); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

// A split of before an upgrade is read: if it were refused, no weight of it would be confirmed.
func TestResourcesOfProxiesAreReadWhereTheyWereFormerly(t *testing.T) {
	for text, want := range map[string]string{
		`{"router":"nginx","proxyResources":{"limits":{"memory":"1Gi"}}}`:                         "{resources: {limits: {memory: 1Gi}}}",
		"proxyResources: {limits: {memory: 1Gi}}":                                                 "{resources: {limits: {memory: 1Gi}}}",
		"proxyResources: {requests: {cpu: 1}}\nproxyPods: {replicas: 3}":                          "{replicas: 3, resources: {requests: {cpu: 1}}}",
		"proxyResources: {requests: {cpu: 1}}\nproxyPods: {resources: {limits: {memory: 1Gi}}}\n": "{resources: {limits: {memory: 1Gi}}}",
	} {
		split := &TrafficSplit{}
		split.Annotations = map[string]string{AnnotationRouting: text}
		got, err := RoutingOf(split)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(podsOf(t, want), got.ProxyPods); diff != "" {
			t.Errorf("%s (-want +read):\n%s", text, diff)
		}
		SetRouting(split, got)
		if written := split.Annotations[AnnotationRouting]; strings.Contains(written, "proxyResources") {
			t.Errorf("%s is written as %s", text, written)
		}
	}
}
