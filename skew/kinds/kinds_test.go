// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"testing"

	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
)

func TestTheVersionOfTheKindsIsInTheirDescription(t *testing.T) {
	const rollout = `"x-kubernetes-group-version-kind":[{"group":"serin.dev","kind":"Rollout","version":"v1alpha1"}]`
	for name, test := range map[string]struct{ document, want string }{
		"as the chart installs them":     {`{"components":{"schemas":{"a":{"description":"DeleteOptions (Serin 9.9.9)"},"dev.serin.v1alpha1.Rollout":{"description":"Rollout releases. (Serin 0.3.0)",` + rollout + `}}}}`, "0.3.0"},
		"installed from config/crd":      {`{"components":{"schemas":{"dev.serin.v1alpha1.Rollout":{"description":"Rollout releases.",` + rollout + `}}}}`, ""},
		"a cluster without these kinds":  {`{}`, ""},
		"a version before the last word": {`{"components":{"schemas":{"r":{"description":"(Serin 0.3.0) releases.",` + rollout + `}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parse([]byte(test.document)); err != nil || got != test.want {
				t.Errorf("got %q and %v, want %q", got, err, test.want)
			}
		})
	}
	if _, err := parse([]byte("not now")); err == nil {
		t.Error("what is no document is read")
	}
}

func TestTheVersionOfTheKindsIsReadFromTheCluster(t *testing.T) {
	described := func(path string) openapi.Client {
		return &openapitest.FakeClient{PathsMap: map[string]openapi.GroupVersion{path: openapitest.FakeGroupVersion{
			GVSpec: []byte(`{"components":{"schemas":{"r":{"description":"Rollout releases. (Serin 0.3.0)","x-kubernetes-group-version-kind":[{"kind":"Rollout"}]}}}}`),
		}}}
	}
	if got, err := Version(described("apis/serin.dev/v1alpha1")); err != nil || got != "0.3.0" {
		t.Errorf("got %q and %v", got, err)
	}
	if got, err := Version(described("apis/apps/v1")); err != nil || got != "" {
		t.Errorf("of a cluster without the kinds: %q and %v", got, err)
	}
	if _, err := Version(&openapitest.FakeClient{ForcedErr: errors.New("not now")}); err == nil {
		t.Error("what can't be read is a version")
	}
}
