// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "testing"

func TestAnAddedFieldThatChangesARouteIsSeen(t *testing.T) {
	t.Parallel()
	wanted := map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "website"}}}}}
	rule := func(field string, value any) map[string]any {
		return map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "website"}}, field: value}}}
	}
	for name, test := range map[string]struct {
		live map[string]any
		want bool
	}{
		"nothing is added":                          {wanted, true},
		"filters of a rule":                         {rule("filters", []any{map[string]any{"type": "ExtensionRef"}}), false},
		"a time-out of a rule":                      {rule("timeouts", map[string]any{"request": "1s"}), false},
		"an empty list":                             {rule("filters", []any{}), true},
		"nothing in the place of a list":            {rule("filters", nil), true},
		"a field that a newer API server fills in":  {rule("future", "default"), true},
		"a field that is wanted and has gone":       {map[string]any{"rules": []any{map[string]any{}}}, false},
		"a list that is longer than what is wanted": {map[string]any{"rules": append([]any{map[string]any{}}, wanted["rules"].([]any)...)}, false},
	} {
		if got := equalSpec(wanted, test.live); got != test.want {
			t.Errorf("%s: equal is %t, want %t", name, got, test.want)
		}
	}
}
