// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func FuzzASelectorIsShownAsWhatItSelects(f *testing.F) {
	for _, text := range []string{"", "app=web", "app==web,app=x", "app!=web", "app in (a,b),!tier", "x", "n>1", "a notin (b,)", "app=w.b"} {
		f.Add(text, "app", "web")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		selector, err := labels.Parse(text)
		if err != nil {
			return
		}
		out, err := shown(selector)
		if err != nil || out == nil {
			if err == nil && !selector.Empty() {
				t.Fatalf("%q is shown as nothing", text)
			}
			return
		}
		back, err := metav1.LabelSelectorAsSelector(out)
		if err != nil {
			t.Fatalf("%q is shown as %+v: %v", text, out, err)
		}
		for _, set := range []labels.Set{nil, {key: value}, {"app": value}, {"app": "web"}, {"tier": ""}} {
			if selector.Matches(set) != back.Matches(set) {
				t.Fatalf("%q and %+v differ about %v", text, out, set)
			}
		}
	})
}

func TestAComparisonOfNumbersIsRefused(t *testing.T) {
	selector, err := labels.Parse("n>1")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := shown(selector); err == nil {
		t.Errorf("shown as %+v", out)
	}
}
