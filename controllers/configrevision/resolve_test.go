// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var (
	app = Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"}
	key = Reference{Kind: v1alpha1.ConfigurationSecret, Name: "key"}
)

func copyOf(ref Reference, name string) Copy { return Copy{Kind: ref.Kind, Name: name} }

func TestResolve(t *testing.T) {
	v1, v2 := Mapping{app: "app-1"}, Mapping{app: "app-2"}
	both := []Copy{copyOf(app, "app-1"), copyOf(app, "app-2")}
	tests := []struct {
		name  string
		facts Facts
		want  Resolution
	}{
		{
			name:  "the first content is copied and becomes part of the template",
			facts: Facts{References: []Reference{app}, Present: v1},
			want:  Resolution{Template: v1, Recorded: Mapping{}, Missing: []Reference{app}},
		},
		{
			name:  "a content is recorded once the template has it",
			facts: Facts{References: []Reference{app}, Present: v1, Template: v1, Copies: both[:1]},
			want:  Resolution{Template: v1, Recorded: v1},
		},
		{
			name:  "another content takes the place of the one that was released",
			facts: Facts{References: []Reference{app}, Present: v2, Template: v1, Released: true, Recorded: v1, Versions: []Mapping{v1}, Copies: both[:1]},
			want:  Resolution{Template: v2, Recorded: v1, Missing: []Reference{app}},
		},
		{
			name:  "a crash before the record loses no change",
			facts: Facts{References: []Reference{app}, Present: v2, Template: v2, Recorded: v1, Versions: []Mapping{v1}, Copies: both},
			want:  Resolution{Template: v2, Recorded: v2},
		},
		{
			name:  "a version that a user returned to keeps its content",
			facts: Facts{References: []Reference{app}, Present: v2, Template: v1, Released: true, Recorded: v2, Versions: []Mapping{v1, v2}, Copies: both},
			want:  Resolution{Template: v1, Recorded: v2},
		},
		{
			name:  "a new version has the present content, also after a user returned to an old one",
			facts: Facts{References: []Reference{app}, Present: v2, Template: v1, Recorded: v2, Versions: []Mapping{v1, v2}, Copies: both},
			want:  Resolution{Template: v2, Recorded: v2},
		},
		{
			name:  "a content that is reverted is the previous version",
			facts: Facts{References: []Reference{app}, Present: v1, Template: v2, Released: true, Recorded: v2, Versions: []Mapping{v1, v2}, Copies: both},
			want:  Resolution{Template: v1, Recorded: v2},
		},
		{
			name:  "an object that is deleted leaves its content to the version that has it",
			facts: Facts{References: []Reference{app}, Template: v1, Released: true, Recorded: v1, Versions: []Mapping{v1}, Copies: both[:1]},
			want:  Resolution{Template: v1, Recorded: v1},
		},
		{
			name:  "an object that never was leaves the reference as it is",
			facts: Facts{References: []Reference{app}},
			want:  Resolution{Template: Mapping{}, Recorded: Mapping{}},
		},
		{
			name:  "a content whose copy is gone for good is replaced by the present one",
			facts: Facts{References: []Reference{app}, Present: v2, Template: v1, Released: true, Recorded: v2, Versions: []Mapping{v1, v2}, Copies: both[1:]},
			want:  Resolution{Template: v2, Recorded: v2},
		},
		{
			name:  "a copy that was deleted is made again while its content is there",
			facts: Facts{References: []Reference{app}, Present: v1, Template: v1, Released: true, Recorded: v1, Versions: []Mapping{v1}},
			want:  Resolution{Template: v1, Recorded: v1, Missing: []Reference{app}},
		},
		{
			name:  "a previous version's copy is made again too",
			facts: Facts{References: []Reference{app}, Present: v1, Template: v2, Released: true, Recorded: v1, Versions: []Mapping{v1, v2}, Copies: both[1:]},
			want:  Resolution{Template: v2, Recorded: v1, Missing: []Reference{app}},
		},
		{
			name:  "what the template does not read any more is no part of it, and its copy is not used",
			facts: Facts{References: []Reference{key}, Present: Mapping{key: "key-1"}, Template: Mapping{app: "app-1", key: "key-1"}, Recorded: Mapping{app: "app-1", key: "key-1"}, Copies: []Copy{copyOf(app, "app-0"), copyOf(app, "app-1"), copyOf(key, "key-1")}},
			want:  Resolution{Template: Mapping{key: "key-1"}, Recorded: Mapping{key: "key-1"}, Unused: []Copy{copyOf(app, "app-0")}},
		},
		{
			name:  "a Secret's copy is not taken for a ConfigMap's of the same name",
			facts: Facts{References: []Reference{app}, Present: v1, Template: v1, Recorded: v1, Copies: []Copy{copyOf(key, "app-1")}},
			want:  Resolution{Template: v1, Recorded: v1, Missing: []Reference{app}, Unused: []Copy{copyOf(key, "app-1")}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Resolve(test.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the facts, a second look after the actions of the first one changes
// nothing, and no copy is dropped that a pod reads.
func FuzzResolveSettles(f *testing.F) {
	f.Add(uint16(0), uint16(0))
	f.Add(uint16(0xffff), uint16(0x5a5a))
	f.Fuzz(func(t *testing.T, a, b uint16) {
		facts := made(a, b)
		first := Resolve(facts)
		for _, c := range first.Unused {
			for _, m := range append(facts.Versions, facts.Template, first.Template) {
				for ref, name := range m {
					if ref.Kind == c.Kind && name == c.Name {
						t.Fatalf("%s is dropped, and read by %v", name, m)
					}
				}
			}
		}
		for _, ref := range first.Missing {
			facts.Copies = append(facts.Copies, copyOf(ref, facts.Present[ref]))
		}
		facts.Released = facts.Released && first.Template.String() == facts.Template.String()
		facts.Template, facts.Recorded = first.Template, first.Recorded
		second := Resolve(facts)
		if second.Template.String() != first.Template.String() || len(second.Missing) > 0 {
			t.Fatalf("first %+v, then %+v", first, second)
		}
		facts.Recorded = second.Recorded
		if third := Resolve(facts); !cmp.Equal(second, third) {
			t.Fatalf("second %+v, then %+v", second, third)
		}
	})
}

// made are facts about one object, of which each bit decides something.
func made(a, b uint16) Facts {
	bit := func(n int) bool { return a>>n&1 == 1 }
	name := func(n uint16) string { return []string{"", "app-1", "app-2", "app-3"}[n&3] }
	set := func(n uint16) Mapping {
		if name(n) == "" {
			return Mapping{}
		}
		return Mapping{app: name(n)}
	}
	f := Facts{Present: set(b), Template: set(b >> 2), Recorded: set(b >> 4), Versions: []Mapping{set(b >> 6), set(b >> 8)}, Released: bit(0)}
	if bit(1) {
		f.References = []Reference{app}
	}
	for i := range uint16(3) {
		if bit(2 + int(i)) {
			f.Copies = append(f.Copies, copyOf(app, name(i+1)))
		}
	}
	return f
}

func TestMappingIsReadAsItIsWritten(t *testing.T) {
	m := Mapping{app: "app-1", key: "key-2", {Kind: v1alpha1.ConfigurationConfigMap, Name: "a.b-c"}: "a.b-c-3"}
	const want = "ConfigMap/a.b-c=a.b-c-3,ConfigMap/app=app-1,Secret/key=key-2"
	if got := m.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(m, ParseMapping(want)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(m, FromStatus(m.Status())); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"", ",", "x", "=", "a/b", "ConfigMap/=x", "ConfigMap/app="} {
		if got := ParseMapping(none); len(got) > 0 {
			t.Errorf("%q is read as %v", none, got)
		}
	}
}

func FuzzParseMapping(f *testing.F) {
	f.Add("ConfigMap/app=app-1,Secret/key=key-2")
	f.Add("a/b=c,,a/b=d/e=f")
	f.Fuzz(func(t *testing.T, annotation string) {
		m := ParseMapping(annotation)
		if diff := cmp.Diff(m, ParseMapping(m.String())); diff != "" {
			t.Error(diff)
		}
	})
}
