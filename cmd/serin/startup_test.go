// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
)

// described serves a description of the kinds.
type described struct {
	document string
	err      error
}

func (d described) OpenAPIV3() openapi.Client {
	return &openapitest.FakeClient{PathsMap: map[string]openapi.GroupVersion{
		"apis/serin.dev/v1alpha1": openapitest.FakeGroupVersion{GVSpec: []byte(d.document)},
	}, ForcedErr: d.err}
}

func TestTheOperatorRefusesKindsThatItDoesNotGoWith(t *testing.T) {
	document := func(version string) string {
		return `{"components":{"schemas":{"r":{"description":"Rollout releases. (Serin ` + version + `)","x-kubernetes-group-version-kind":[{"kind":"Rollout"}]}}}}`
	}
	for name, test := range map[string]struct {
		cluster described
		version string
		refused bool
	}{
		"of its own version":           {described{document: document("0.3.0")}, "0.3.1", false},
		"of the minor version before":  {described{document: document("0.2.0")}, "0.3.1", false},
		"of the minor version after":   {described{document: document("0.4.0")}, "0.3.1", false},
		"two minor versions older":     {described{document: document("0.1.0")}, "0.3.1", true},
		"two minor versions newer":     {described{document: document("0.5.0")}, "0.3.1", true},
		"of an operator that is built": {described{document: document("0.5.0")}, "(devel)", false},
		"that don't say their version": {described{document: "{}"}, "0.3.1", false},
		"that can't be read":           {described{err: errors.New("forbidden")}, "0.3.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkKinds(t.Context(), test.cluster, test.version)
			if (err != nil) != test.refused || test.refused && !strings.Contains(err.Error(), "one minor version at a time") {
				t.Errorf("got %v", err)
			}
		})
	}
}
