// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAMirrorNeedsAGatewayThatSaysItCan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects string
		refused bool
	}{
		"the class lists both features":             {parts(gateway, class("{name: HTTPRouteRequestMirror}, {name: HTTPRouteRequestPercentageMirror}")), false},
		"the class lists them as older versions do": {parts(gateway, class("HTTPRouteRequestMirror, HTTPRouteRequestPercentageMirror")), false},
		"the class lists none":                      {parts(gateway, class("")), true},
		"there is no such class":                    {gateway, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, parts(mirrored(plain), test.objects), everything(), interceptor.Funcs{})
			_, _, problems := s.observe()
			if (len(problems) > 0) != test.refused {
				t.Errorf("problems %+v", problems)
			}
		})
	}
}

func TestAMirrorNeedsAGatewayThatTheOperatorMayRead(t *testing.T) {
	t.Parallel()
	able := parts(mirrored(plain), gateway, class("{name: HTTPRouteRequestMirror}, {name: HTTPRouteRequestPercentageMirror}"))
	for name, test := range map[string]struct {
		watched []string
		served  []string
		refused bool
	}{
		"it watches the namespace":         {watched: []string{"bank", "shop"}},
		"it watches another namespace":     {watched: []string{"bank"}, refused: true},
		"it reads nothing without one":     {watched: []string{"shop"}, served: []string{kindGatewayClass}, refused: true},
		"the cluster has no such Gateways": {watched: []string{"bank"}, served: []string{kindGateway, kindGatewayClass}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := everything()
			for _, kind := range test.served {
				delete(served.Kinds, kind)
			}
			s := newFixture(t, able, served, interceptor.Funcs{})
			s.router.options.Namespaces = test.watched
			_, _, problems := s.observe()
			if refused := len(problems) > 0; refused != test.refused || refused && !strings.Contains(problems[0].Message, "may not read Gateway") {
				t.Errorf("problems %+v", problems)
			}
		})
	}
}
