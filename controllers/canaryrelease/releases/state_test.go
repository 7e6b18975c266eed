// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheStateOfAReleaseIsReadOffLabels(t *testing.T) {
	record := func(version, status, uid, revision string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "r", Labels: map[string]string{"version": version, "status": status, LabelUID: uid, LabelRevision: revision, LabelContent: "c" + uid}}
	}
	for _, test := range []struct {
		name    string
		records []metav1.ObjectMeta
		want    Release
		fails   bool
	}{
		{name: "no release"},
		{name: "the newest by number, not by name", records: []metav1.ObjectMeta{record("9", "superseded", "", ""), record("10", "deployed", "", "")}, want: Release{Newest: 10, Deployed: 10, Status: "deployed"}},
		{name: "a failed upgrade", records: []metav1.ObjectMeta{record("1", "deployed", "", ""), record("2", "failed", "", "")}, want: Release{Newest: 2, Deployed: 1, Status: "failed"}},
		{name: "uninstalled, with history", records: []metav1.ObjectMeta{record("1", "uninstalled", "", "")}, want: Release{Newest: 1, Status: "uninstalled"}},
		{name: "adopted", records: []metav1.ObjectMeta{record("2", "deployed", "u1", "2")}, want: Release{Newest: 2, Deployed: 2, Status: "deployed", AdoptedBy: "u1", AdoptedContent: "cu1"}},
		{name: "labels that Helm handed on to another user's upgrade", records: []metav1.ObjectMeta{record("3", "deployed", "u1", "2")}, want: Release{Newest: 3, Deployed: 3, Status: "deployed"}},
		{name: "no record of Helm", records: []metav1.ObjectMeta{record("x", "deployed", "", "")}, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := stateOf(test.records)
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNoNameOfAReleaseIsNotLookedFor(t *testing.T) {
	list := func(context.Context, string) ([]metav1.ObjectMeta, error) {
		t.Error("the API server was asked")
		return nil, nil
	}
	for _, name := range []string{"", "a/b", "A", "a,owner!=helm", strings.Repeat("a", 54)} {
		if _, err := State(t.Context(), list, name); err == nil || err.Error() != "spec.release: is not the name of a Helm release: name one that helm list shows" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestWhatWasAskedForIsKnownByItsContent(t *testing.T) {
	asked := Request{Release: "shop", Version: 4, Path: "web", Config: []byte("a: b"), Name: "try", UID: "u1"}
	for name, test := range map[string]struct {
		change func(*Request)
		want   bool
	}{
		"the same":       {func(*Request) {}, true},
		"restored":       {func(q *Request) { q.UID = "u2" }, true},
		"other values":   {func(q *Request) { q.Config = []byte("a: c") }, false},
		"another name":   {func(q *Request) { q.Name = "try2" }, false},
		"a newer one":    {func(q *Request) { q.Version = 5 }, false},
		"another path":   {func(q *Request) { q.Path = "web/db" }, false},
		"another chart":  {func(q *Request) { q.Release = "blog" }, false},
		"parts moved on": {func(q *Request) { q.Path, q.Config = "we", []byte("ba: b") }, false},
	} {
		q := asked
		test.change(&q)
		if got := q.Content() == asked.Content(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := asked.Content(); len(got) != 4 {
		t.Errorf("the content %q tells a guessed value", got)
	}
}
