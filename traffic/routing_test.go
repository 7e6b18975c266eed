// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestTheRootServiceIsOneOfTheSplitsNamespace(t *testing.T) {
	for service, want := range map[string]string{
		"web": "web", "web.shop": "web", "web.shop.svc": "web", "web.shop.svc.cluster.local": "web",
		"": "", ".shop": "", "web.bank": "", "web.bank.svc": "", "web.example.com": "", "web.shop.example.com": "", "web.shop.svcs": "",
	} {
		split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: splitv1.TrafficSplitSpec{Service: service}}
		if got, err := traffic.RootName(split); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", service, got, err, want)
		}
	}
}
