// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestSessionAffinityIsRefusedWhereNothingKeepsClientsOnAVersion(t *testing.T) {
	for name, test := range map[string]struct {
		router v1alpha1.RouterName
		edit   func(*v1alpha1.RolloutSpec)
		want   string // of the error; "" for none
	}{
		"nginx keeps them":                  {router: v1alpha1.RouterNginx},
		"a year":                            {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) { s.SessionAffinity.MaxAge = "8760h" }},
		"a router of a plugin is asked":     {router: "other"},
		"no router":                         {router: v1alpha1.RouterNone, want: "spec.sessionAffinity: the router none can't keep clients on a version; remove it, or name the router nginx"},
		"a mesh":                            {router: v1alpha1.RouterSMI, want: "the router smi can't keep"},
		"Istio":                             {router: v1alpha1.RouterIstio, want: "the router istio can't keep"},
		"a gateway keeps them by its route": {router: v1alpha1.RouterGatewayAPI},
		"all clients move at once": {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) {
			s.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{}}
		}, want: "the strategy BlueGreen moves all clients at once"},
		"a part of a second":  {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) { s.SessionAffinity.MaxAge = "1500ms" }, want: `spec.sessionAffinity.maxAge: "1500ms" is not the age`},
		"no time":             {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) { s.SessionAffinity.MaxAge = "0s" }, want: "whole seconds from 1s"},
		"more than a year":    {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) { s.SessionAffinity.MaxAge = "8761h" }, want: "to 8760h"},
		"what is no duration": {router: v1alpha1.RouterNginx, edit: func(s *v1alpha1.RolloutSpec) { s.SessionAffinity.MaxAge = "long" }, want: "spec.sessionAffinity.maxAge"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.RolloutSpec{
				Strategy:        v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 20}, {Weight: 50, Matches: []string{"beta"}}}},
				SessionAffinity: &v1alpha1.SessionAffinity{CookieName: "version", MaxAge: "12h"},
			}
			if test.edit != nil {
				test.edit(spec)
			}
			s, err := Parse(spec, test.router, nil, Metrics{})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				return
			}
			if err != nil || len(s.Steps) != 2 {
				t.Fatalf("steps %+v, error %v", s.Steps, err)
			}
			// Clients that stay keep the share of an earlier weight: that is no fault of the router.
			for i, step := range s.Steps {
				if step.Judge.Shares {
					t.Errorf("step %d tests the share of the requests", i)
				}
			}
		})
	}
}
