// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "testing"

func TestWhichOfTwoMatchesGoesFirst(t *testing.T) {
	t.Parallel()
	path := func(kind, value string) match { return match{path: pathMatch{Type: kind, Value: value}} }
	call := func(kind, service string) match {
		return match{kind: kindGRPCRoute, callType: kind, service: service}
	}
	for name, test := range map[string]struct {
		a, b match
		want order
	}{
		"an expression on the path and a prefix":      {path(typeRegex, "/a.*"), path(typePrefix, "/a"), unknown},
		"a prefix and an expression on the path":      {path(typePrefix, "/a"), path(typeRegex, "/a.*"), unknown},
		"two expressions on the path":                 {path(typeRegex, "/a.*"), path(typeRegex, "/b.*"), unknown},
		"the same expression on the path":             {path(typeRegex, "/a.*"), path(typeRegex, "/a.*"), first},
		"a short prefix and a long one":               {path(typePrefix, "/a"), path(typePrefix, "/a/b"), second},
		"an expression on the call and a whole name":  {call(typeRegex, "shop.*"), call(typeExact, "shop"), unknown},
		"a whole name and an expression on the call":  {call(typeExact, "shop"), call(typeRegex, "shop.*"), unknown},
		"the same expression on the call":             {call(typeRegex, "shop.*"), call(typeRegex, "shop.*"), first},
		"the name of a service and none at all":       {call(typeExact, "shop"), call(typeExact, ""), first},
		"no name of a service and one that is longer": {call(typeExact, ""), call(typeExact, "shop"), second},
	} {
		if got := precedence(position{match: test.a, place: 0}, position{match: test.b, place: 1}); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestAHeaderHasOneValueWhateverTheCaseOfItsName(t *testing.T) {
	t.Parallel()
	value := func(kind, name, value string) []valueMatch {
		return []valueMatch{{Type: kind, Name: name, Value: value}}
	}
	for name, test := range map[string]struct {
		a, b []valueMatch
		want bool
	}{
		"two values of one header":               {value(typeExact, "x-user", "ann"), value(typeExact, "x-user", "bob"), true},
		"its name in another case":               {value(typeExact, "x-user", "ann"), value(typeExact, "X-User", "bob"), true},
		"the same value":                         {value(typeExact, "x-user", "ann"), value(typeExact, "X-User", "ann"), false},
		"two headers":                            {value(typeExact, "x-user", "ann"), value(typeExact, "x-team", "bob"), false},
		"an expression, which may hold for both": {value(typeRegex, "x-user", ".*"), value(typeExact, "x-user", "bob"), false},
	} {
		if got := valuesApart(test.a, test.b); got != test.want {
			t.Errorf("%s: no request meets both: %t, want %t", name, got, test.want)
		}
	}
}
