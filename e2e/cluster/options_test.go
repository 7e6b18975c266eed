// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/serin-dev/serin/e2e/tools"
)

func TestTheClusterThatIsMeant(t *testing.T) {
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name         string
		options      Options
		kubeconfig   string // in the environment
		wantExisting bool
		wantPath     string
	}{
		{name: "nothing named means the local one", wantPath: filepath.Join(checkout.Root, ".cache", "cluster", "kubeconfig")},
		{name: "a folder means the local one there", options: Options{Dir: "/c"}, wantPath: "/c/kubeconfig"},
		{name: "a kubeconfig file means an existing one", options: Options{Kubeconfig: "/k"}, wantExisting: true, wantPath: "/k"},
		{name: "the environment means an existing one", kubeconfig: "/env", wantExisting: true, wantPath: "/env"},
		{name: "an option comes before the environment", options: Options{Kubeconfig: "/k"}, kubeconfig: "/env", wantExisting: true, wantPath: "/k"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(KubeconfigVariable, test.kubeconfig)
			got, _, err := test.options.complete()
			if err != nil {
				t.Fatal(err)
			}
			if got.Existing() != test.wantExisting {
				t.Errorf("existing: %t, want %t", got.Existing(), test.wantExisting)
			}
			path, err := KubeconfigPath(test.options)
			if err != nil || path != test.wantPath {
				t.Errorf("the kubeconfig file is %q (%v), want %q", path, err, test.wantPath)
			}
		})
	}
}

func TestTheTestsHaveAClusterBesideTheDemos(t *testing.T) {
	t.Setenv(KubeconfigVariable, "")
	t.Setenv(ContextVariable, "")
	options, err := TestOptions()
	if err != nil {
		t.Fatal(err)
	}
	demo, _, err := Options{}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if options.Existing() || filepath.Dir(options.Dir) != filepath.Dir(demo.Dir) || options.Dir == demo.Dir {
		t.Errorf("the tests' cluster is %+v, want a local one beside %s", options, demo.Dir)
	}
	t.Setenv(ContextVariable, "kind-tests")
	if options, err = TestOptions(); err != nil || options.Context != "kind-tests" {
		t.Errorf("the tests' cluster is %+v (%v), want the one that the environment names", options, err)
	}
}

func TestAFolderWhoseSocketsWouldHaveTooLongNamesIsRefused(t *testing.T) {
	_, _, err := Options{Dir: "/" + strings.Repeat("x", maxDirLength), Out: io.Discard}.complete()
	if err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("error %v, want one that says what to set", err)
	}
}

func TestNotPossibleIsToldFromFailed(t *testing.T) {
	err := error(&NotPossibleError{Reason: "no root", Remedy: "become root"})
	if !errors.Is(err, ErrNotPossible) {
		t.Error("it does not match ErrNotPossible")
	}
	if !strings.Contains(err.Error(), "no root; become root") {
		t.Errorf("the message %q lacks the reason or the remedy", err)
	}
	if errors.Is(errors.New("failed"), ErrNotPossible) {
		t.Error("another error matches it")
	}
}

func TestImagesOfAClusterThatIsNotKindsAreNotGuessedAt(t *testing.T) {
	c := &Cluster{images: foreignStore{context: "production"}, options: Options{Out: io.Discard}}
	err := c.ImportImages(t.Context(), makeArchive("a:1"))
	if err == nil || !strings.Contains(err.Error(), "production") || !strings.Contains(err.Error(), "/archives/a.tar") {
		t.Errorf("error %v, want one that names the context and the archive", err)
	}
}
