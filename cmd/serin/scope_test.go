// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestScopes(t *testing.T) {
	for name, test := range map[string]struct {
		scope      scopeOptions
		namespaces []string
		want       string
	}{
		"everything":                  {scopeOptions{clusterObjects: true}, []string{"shop"}, ""},
		"some namespaces":             {scopeOptions{namespaces: []string{"shop", "bank"}, clusterObjects: true}, []string{"bank"}, ""},
		"these and nothing else":      {scopeOptions{namespaces: []string{"shop"}}, []string{"shop"}, ""},
		"all namespaces, no cluster":  {scopeOptions{}, nil, "--cluster-objects: can be false only with --watch-namespace"},
		"a namespace beyond the rest": {scopeOptions{namespaces: []string{"shop"}}, []string{"shop", "bank"}, `--secret-namespace: "bank" is not one of --watch-namespace`},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.scope.check("secret-namespace", test.namespaces)
			if got := test.want == ""; (err == nil) != got || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
