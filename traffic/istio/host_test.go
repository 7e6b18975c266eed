// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhichHostsAreAServiceOfTheNamespace(t *testing.T) {
	for host, want := range map[string]bool{
		"web": true, "web.shop": true, "web.shop.svc": true, "web.shop.svc.cluster.local": true,
		"web.blog": false, "web.blog.svc": false, "web.blog.svc.cluster.local": false,
		"web.shop.example.com": false, "web.shop.svcs": false, "blog": false, ".shop": false, "*": false, "*.shop": false, "": false,
	} {
		if got := isService(host, "shop", "web"); got != want {
			t.Errorf("%q: %t, want %t", host, got, want)
		}
	}
}

func TestWhatIstioTakesAPortFor(t *testing.T) {
	said := func(protocol string) *string { return &protocol }
	for name, test := range map[string]struct {
		port corev1.ServicePort
		want string
	}{
		"a name":                           {corev1.ServicePort{Name: "http", Port: 80}, sectionHTTP},
		"the first word of a name":         {corev1.ServicePort{Name: "tls-web", Port: 443}, sectionTLS},
		"an appProtocol and another name":  {corev1.ServicePort{Name: "http", AppProtocol: said("TCP"), Port: 80}, sectionTCP},
		"grpc-web":                         {corev1.ServicePort{Name: "grpc-web", Port: 80}, sectionHTTP},
		"nothing":                          {corev1.ServicePort{Port: 80}, ""},
		"a word that it does not know":     {corev1.ServicePort{Name: "web", Port: 80}, ""},
		"nothing, on the port of SMTP":     {corev1.ServicePort{Port: 25}, sectionTCP},
		"nothing, on the port of MySQL":    {corev1.ServicePort{Port: 3306}, sectionTCP},
		"nothing, on the port of MongoDB":  {corev1.ServicePort{Port: 27017}, sectionTCP},
		"a word for HTTP on that of MySQL": {corev1.ServicePort{Name: "http", Port: 3306}, sectionHTTP},
	} {
		if got := sectionOf(test.port); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
