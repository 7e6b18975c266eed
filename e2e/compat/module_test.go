// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheModuleHasEachStagingRepositoryInItsPublishedVersion(t *testing.T) {
	const upstream = `module k8s.io/kubernetes

go 1.22.0

require (
	github.com/spf13/cobra v1.8.1
	k8s.io/api v0.0.0
	k8s.io/sample-apiserver v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
)
`
	const want = `module serin.dev/compat

go 1.22.0

require (
	github.com/spf13/cobra v1.8.1
	k8s.io/api v0.0.0
	k8s.io/sample-apiserver v0.0.0
	k8s.io/kubernetes v1.31.4
)

replace (
	k8s.io/api => k8s.io/api v0.31.4
	k8s.io/sample-apiserver => ./empty
)
`
	got, err := module([]byte(upstream), "v1.31.4")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheNewestReleaseOfAMinorVersion(t *testing.T) {
	versions := []string{"v1.30.14", "v1.31.2", "v1.31.10", "v1.31.11-rc.0", "v1.3.1"}
	if got, err := newest(versions, "1.31"); got != "v1.31.10" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	for _, minor := range []string{"1.32", "", "v1.31", "1.31.2"} {
		if got, err := newest(versions, minor); err == nil {
			t.Errorf("%q: got %s", minor, got)
		}
	}
}
