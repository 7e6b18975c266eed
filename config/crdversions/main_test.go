// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/config/crdfile"
)

const crd = `---
spec:
  group: split.smi-spec.io
  versions:
  - name: v1alpha4
    schema:
      openAPIV3Schema:
        description: A split.
        properties:
          spec:
            properties:
              backends:
                items:
                  properties:
                    description:
                      type: string
                    weight:
                      description: A share.
                      type: integer
                  required:
                  - weight
    served: true
    storage: true
`

func TestOlderVersionsComeBeforeTheStoredOneAndGiveWeightsADefault(t *testing.T) {
	got, err := crdfile.Change([]byte(crd), add([]string{"v1alpha3"}))
	if err != nil {
		t.Fatal(err)
	}
	head, stored, _ := strings.Cut(crd, "  - name: v1alpha4")
	want := head + `  - name: v1alpha3
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              backends:
                items:
                  properties:
                    description:
                      type: string
                    weight:
                      type: integer
                      default: 0
                  required:
                  - weight
        description: TrafficSplit of an older version. kubectl explain describes the fields of the stored one.
    served: true
    storage: false
  - name: v1alpha4` + stored
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAKindThatIsNoSplitIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":      "a: [",
		"no versions":  "spec: {}\n",
		"no weight":    "spec: {versions: [{name: v1, schema: {openAPIV3Schema: {}}}]}\n",
		"two versions": "spec: {versions: [{name: v1}, {name: v2}]}\n",
	} {
		if out, err := crdfile.Change([]byte(text), add([]string{"v0"})); err == nil {
			t.Errorf("%s: became %s", name, out)
		}
	}
}
