// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
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
