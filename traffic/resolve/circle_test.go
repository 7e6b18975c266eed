// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// aged is a split of an age, the smaller the older, from "root" to some Services.
func aged(name string, age int64, root string, backends ...string) *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", CreationTimestamp: metav1.Unix(age, 0), Generation: 1},
		Spec:       splitv1.TrafficSplitSpec{Service: root},
	}
	for _, b := range backends {
		split.Spec.Backends = append(split.Spec.Backends, splitv1.Backend{Service: b, Weight: 1})
	}
	return split
}

// live gives a split backends with live traffic, by its status.
func live(split *splitv1.TrafficSplit, backends ...string) *splitv1.TrafficSplit {
	for _, b := range backends {
		split.Status.Backends = append(split.Status.Backends, splitv1.BackendStatus{Service: b, Weight: 1})
	}
	return split
}

func TestCircle(t *testing.T) {
	served := func(split *splitv1.TrafficSplit) resolve.OtherSplit {
		return resolve.OtherSplit{Split: split, Served: true}
	}
	idle := func(split *splitv1.TrafficSplit) resolve.OtherSplit { return resolve.OtherSplit{Split: split} }
	routed := func(split *splitv1.TrafficSplit, r splitv1.Routing) *splitv1.TrafficSplit {
		splitv1.SetRouting(split, r)
		split.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "testers"}}
		return split
	}
	for name, c := range map[string]struct {
		split  *splitv1.TrafficSplit
		others []resolve.OtherSplit
		// want is a part of the message; "" when the split is fine.
		want string
	}{
		"alone":        {split: aged("a", 2, "web", "blue", "green")},
		"side by side": {split: aged("a", 2, "web", "blue"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "red"))}},
		"the same backends": {
			split: aged("a", 2, "web", "blue", "green"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "blue", "green"))},
		},
		"a chain that ends": {
			split: aged("a", 2, "web", "api"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "blue")), served(aged("c", 1, "blue", "red"))},
		},
		"two splits that send to each other": {
			split: aged("a", 2, "web", "blue", "api"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "web"))},
			want: `spec.backends: requests would loop, from Service "web" to "api" to "web" (TrafficSplit "b"); remove "api", or change the other split`,
		},
		"a circle of four": {
			split:  aged("a", 2, "web", "api"),
			others: []resolve.OtherSplit{served(aged("b", 1, "api", "x", "blue")), served(aged("c", 1, "blue", "red")), served(aged("d", 1, "red", "web"))},
			want:   `from Service "web" to "api" to "blue" (TrafficSplit "b") to "red" (TrafficSplit "c") to "web" (TrafficSplit "d")`,
		},
		"a circle of others is theirs": {
			split: aged("a", 2, "web", "api"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "blue")), served(aged("c", 1, "blue", "api"))},
		},
		"by the default backend": {
			split:  routed(aged("a", 2, "web", "blue"), splitv1.Routing{DefaultBackend: "api"}),
			others: []resolve.OtherSplit{served(aged("b", 1, "api", "web"))}, want: "metadata.annotations[serin.dev/routing].defaultBackend: requests would loop",
		},
		"by a mirror": {
			split:  routed(aged("a", 2, "web", "blue"), splitv1.Routing{Mirror: &splitv1.Mirror{Service: "api", Percent: 10}}),
			others: []resolve.OtherSplit{served(aged("b", 1, "api", "web"))}, want: "metadata.annotations[serin.dev/routing].mirror: requests would loop",
		},
		"by the other's fully qualified name": {
			split: aged("a", 2, "web", "api"), others: []resolve.OtherSplit{served(aged("b", 1, "api.shop.svc.cluster.local", "web"))}, want: "would loop",
		},
		"the older of two new ones is not refused": {
			split: aged("a", 1, "web", "api"), others: []resolve.OtherSplit{idle(aged("b", 2, "api", "web"))},
		},
		"the younger of two new ones is": {
			split: aged("a", 2, "web", "api"), others: []resolve.OtherSplit{idle(aged("b", 1, "api", "web"))}, want: "would loop",
		},
		"of the same age, the second by name is": {
			split: aged("b", 1, "web", "api"), others: []resolve.OtherSplit{idle(aged("a", 1, "api", "web"))}, want: "would loop",
		},
		"the older one is when the younger one is served": {
			split: aged("a", 1, "web", "api"), others: []resolve.OtherSplit{served(aged("b", 2, "api", "web"))}, want: "would loop",
		},
		"one with live traffic does not mind what an older one was changed to": {
			split: live(aged("a", 2, "web", "api"), "api"), others: []resolve.OtherSplit{served(aged("b", 1, "api", "web"))},
		},
		"one with live traffic is refused when it is changed to close the circle": {
			split: live(aged("a", 1, "web", "blue", "api"), "blue"), others: []resolve.OtherSplit{served(aged("b", 2, "api", "web"))}, want: "would loop",
		},
		"live traffic counts, whatever the spec says by now": {
			split: aged("a", 1, "web", "api"), others: []resolve.OtherSplit{idle(live(aged("b", 2, "api", "blue"), "web"))}, want: "would loop",
		},
		"a split to itself is refused elsewhere": {split: aged("a", 1, "web", "web")},
	} {
		t.Run(name, func(t *testing.T) {
			problems := resolve.Circle(c.split, c.others)
			got := traffic.Summary(problems)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want …%s…", got, c.want)
			}
			if c.want != "" && (!traffic.Refused(problems) || problems[0].Reason != splitv1.ReasonCircular) {
				t.Errorf("problems %+v", problems)
			}
		})
	}
}
