// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

func TestThePluginRefusesAClusterThatItDoesNotGoWith(t *testing.T) {
	for name, test := range map[string]struct {
		plugin, kinds string
		refused       bool
	}{
		"the same":                 {"v0.3.0", "0.3.0", false},
		"a newer plugin":           {"v0.4.0", "0.3.0", false},
		"an older plugin":          {"v0.2.0", "0.3.0", false},
		"a plugin much newer":      {"v0.5.0", "0.3.0", true},
		"a plugin much older":      {"v0.1.0", "0.3.0", true},
		"a plugin that is built":   {"(devel)", "0.3.0", false},
		"a cluster without a word": {"v0.5.0", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkSkew(test.plugin, test.kinds)
			if (err != nil) != test.refused || test.refused && !strings.Contains(err.Error(), "install kubectl traffic "+test.kinds) {
				t.Errorf("got %v", err)
			}
		})
	}
}
