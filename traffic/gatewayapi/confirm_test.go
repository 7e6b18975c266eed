// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
)

func TestWhatTheParentsOfARouteSay(t *testing.T) {
	t.Parallel()
	const (
		taken   = "{type: Accepted, status: 'True', observedGeneration: 7}, {type: ResolvedRefs, status: 'True', observedGeneration: 7}"
		earlier = "{type: Accepted, status: 'True', observedGeneration: 6}, {type: ResolvedRefs, status: 'True', observedGeneration: 6}"
		public  = "parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: public}, controllerName: example.com/gw, conditions: "
	)
	for name, test := range map[string]struct {
		parents, status string
		want            traffic.Confirmation
		says            string
	}{
		"every parent takes it": {"{name: public}", "{" + public + "[" + taken + "]}", traffic.ConfirmationGiven, ""},
		"no status":             {"{name: public}", "", traffic.ConfirmationPending, `Gateway "public" has reported nothing about it`},
		"an earlier generation": {"{name: public}", "{" + public + "[" + earlier + "]}", traffic.ConfirmationPending, "not reported yet whether it accepts generation 7"},
		"another parent's status": {
			"{name: public}, {name: private}", "{" + public + "[" + taken + "]}", traffic.ConfirmationPending, `Gateway "private" has reported nothing`,
		},
		"another listener's status": {
			"{name: public, sectionName: https}", "{" + public + "[" + taken + "]}", traffic.ConfirmationPending, `Gateway "public" has reported nothing`,
		},
		"only one of the two conditions": {
			"{name: public}", "{" + public + "[{type: Accepted, status: 'True', observedGeneration: 7}]}", traffic.ConfirmationPending, "not reported yet",
		},
		"it is refused": {
			"{name: public}", "{" + public + "[{type: Accepted, status: 'False', reason: NoMatchingListenerHostname, message: no listener, observedGeneration: 7}]}",
			traffic.ConfirmationRefused, `Gateway "public" (example.com/gw) says Accepted=False, NoMatchingListenerHostname: no listener`,
		},
		"it was refused before": {
			"{name: public}", "{" + public + "[{type: Accepted, status: 'False', observedGeneration: 6}]}", traffic.ConfirmationPending, "not reported yet",
		},
		"a reference is refused": {
			"{name: public}", "{" + public + "[{type: Accepted, status: 'True', observedGeneration: 7}, {type: ResolvedRefs, status: 'False', reason: BackendNotFound, observedGeneration: 7}]}",
			traffic.ConfirmationRefused, "ResolvedRefs=False, BackendNotFound",
		},
		"a part of it is dropped": {
			"{name: public}", "{" + public + "[" + taken + ", {type: PartiallyInvalid, status: 'True', reason: UnsupportedValue, observedGeneration: 7}]}",
			traffic.ConfirmationRefused, "PartiallyInvalid=True",
		},
		"a controller that was replaced left its last word": {
			"{name: public}", "{" + strings.Replace(public, "example.com/gw", "example.com/old", 1) + "[" + earlier + "]}, {" + public + "[" + taken + "]}", traffic.ConfirmationGiven, "",
		},
		"one of two controllers refuses": {
			"{name: public}", "{" + public + "[" + taken + "]}, {" + public + "[{type: Accepted, status: 'False', observedGeneration: 7}]}", traffic.ConfirmationRefused, "Accepted=False",
		},
		"a Service is the parent": {
			"{group: '', kind: Service, name: website, port: 80}",
			"{parentRef: {group: '', kind: Service, name: website, port: 80}, controllerName: mesh, conditions: [" + taken + "]}", traffic.ConfirmationGiven, "",
		},
		"another port of the Service": {
			"{group: '', kind: Service, name: website, port: 80}",
			"{parentRef: {group: '', kind: Service, name: website, port: 81}, controllerName: mesh, conditions: [" + taken + "]}",
			traffic.ConfirmationPending, `Service "website" has reported nothing`,
		},
		"no parent":                  {"", "", traffic.ConfirmationRefused, "spec.parentRefs is empty"},
		"a status that is no object": {"{name: public}", "1, {parentRef: 2, conditions: [3]}", traffic.ConfirmationPending, "has reported nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			route := routeWith()
			text, err := yaml.YAMLToJSON([]byte("metadata: {name: website, namespace: shop, generation: 7}\nspec: {parentRefs: [" + test.parents + "]}\nstatus: {parents: [" + test.status + "]}"))
			if err != nil {
				t.Fatal(err)
			}
			if err := utiljson.Unmarshal(text, &route.Object); err != nil {
				t.Fatal(err)
			}
			got, message := confirm(route)
			if got != test.want || !strings.Contains(message, test.says) || (test.says == "") != (message == "") {
				t.Errorf("got %q, %q; want %q, %q", got, message, test.want, test.says)
			}
		})
	}
}
