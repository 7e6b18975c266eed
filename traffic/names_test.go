// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/traffic"
)

func TestWhichSplitAPolicyWasMadeFor(t *testing.T) {
	of := func(namespace string) map[string]string {
		return map[string]string{traffic.LabelProxy: "web", traffic.LabelProxyNamespace: namespace}
	}
	for name, test := range map[string]struct {
		policy metav1.ObjectMeta
		want   types.NamespacedName
	}{
		"that of the proxies": {
			metav1.ObjectMeta{Namespace: "shop", Name: "serin-proxy-web", Labels: of("shop")}, types.NamespacedName{Namespace: "shop", Name: "web"},
		},
		"that of the proxies, from a backup of another namespace": {
			metav1.ObjectMeta{Namespace: "copy", Name: "serin-proxy-web", Labels: of("shop")}, types.NamespacedName{Namespace: "copy", Name: "web"},
		},
		"that of clients in another namespace": {
			metav1.ObjectMeta{Namespace: "other", Name: "serin-proxy-web-7c3966f0ad", Labels: of("shop")}, types.NamespacedName{Namespace: "shop", Name: "web"},
		},
		"one with the label of another's pods": {
			metav1.ObjectMeta{Namespace: "shop", Name: "serin-proxy-web", Labels: map[string]string{traffic.LabelProxy: "web"}}, types.NamespacedName{},
		},
		"one of a user": {metav1.ObjectMeta{Namespace: "shop", Name: "deny"}, types.NamespacedName{}},
	} {
		got, found := traffic.MadeFor(&networkingv1.NetworkPolicy{ObjectMeta: test.policy})
		if got != test.want || found != (test.want.Name != "") {
			t.Errorf("%s: made for %q (%v), want %q", name, got, found, test.want)
		}
	}
}
