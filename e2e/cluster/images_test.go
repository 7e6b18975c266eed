// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/e2e/images"
)

func makeArchive(reference string) images.Archive {
	return images.Archive{Reference: reference, Digest: "sha256:" + reference, Path: "/archives/" + reference[:1] + ".tar"}
}

// memoryStore keeps images in memory.
type memoryStore map[string]string

func (s memoryStore) digests(context.Context) (map[string]string, error) { return s, nil }

func (s memoryStore) load(_ context.Context, archive images.Archive) error {
	s[archive.Reference] = archive.Digest + " loaded"
	return nil
}

func TestOnlyImagesThatHaveChangedAreImported(t *testing.T) {
	store := memoryStore{"a:1": "sha256:a:1", "b:1": "sha256:of before"}
	c := &Cluster{images: store, options: Options{Out: io.Discard}}
	if err := c.ImportImages(t.Context(), makeArchive("a:1"), makeArchive("b:1"), makeArchive("c:1")); err != nil {
		t.Fatal(err)
	}
	want := memoryStore{"a:1": "sha256:a:1", "b:1": "sha256:b:1 loaded", "c:1": "sha256:c:1 loaded"}
	if diff := cmp.Diff(want, store); diff != "" {
		t.Errorf("the images (-want +got):\n%s", diff)
	}
}
