// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
)

func TestAContentIsReadAgainOnlyWhenItHasChanged(t *testing.T) {
	c := New()
	object := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "1", ResourceVersion: version}}
	}
	now := time.Unix(1e9, 0)
	if _, known := c.Digest(object("1")); known {
		t.Error("known before it was read")
	}
	c.Learn(object("1"), "a", now)
	if d, known := c.Digest(object("1")); !known || d != "a" {
		t.Errorf("%q, %v", d, known)
	}
	if _, known := c.Digest(object("2")); known {
		t.Error("another version is taken for the one that was read")
	}
	if at := c.ChangedAt(object("1")); !at.IsZero() {
		t.Errorf("changed at %v, when it was read first", at)
	}
	c.Learn(object("2"), "a", now.Add(time.Second))
	if at := c.ChangedAt(object("2")); !at.IsZero() {
		t.Errorf("changed at %v, with the same content", at)
	}
	for i := range 30 { // what changes all the time
		c.Learn(object("3"), string(rune('b'+i)), now.Add(time.Duration(2+i)*time.Second))
	}
	if at := c.ChangedAt(object("3")); !at.Equal(now.Add(2 * time.Second)) {
		t.Errorf("changed at %v, want the first of many", at)
	}
}

func TestAChangedObjectConcernsWhoReadsItAndWhoItIsACopyFor(t *testing.T) {
	c := New()
	app := configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"}
	c.Use(types.NamespacedName{Namespace: "shop", Name: "website"}, []configrevision.Reference{app})
	c.Use(types.NamespacedName{Namespace: "other", Name: "website"}, []configrevision.Reference{app})
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "1"}}
	if got := c.Changed(app.Kind, object, nil); len(got) != 1 || got[0].Namespace != "shop" {
		t.Errorf("concerns %v", got)
	}
	if got := c.Changed(v1alpha1.ConfigurationSecret, object, nil); len(got) != 0 {
		t.Errorf("a Secret of the same name concerns %v", got)
	}
	object.Name = "app-1"
	website := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "website"}}}
	if got := c.Changed(app.Kind, object, website); len(got) != 1 || got[0].Name != "website" {
		t.Errorf("a copy concerns %v", got)
	}
	c.Learn(object, "a", time.Unix(1e9, 0))
	c.Changed(app.Kind, object, nil)
	if len(c.digests) != 0 {
		t.Error("a digest that no Rollout needs is kept")
	}
}

func TestAPlaceIsWatchedOnceAndOnlyWhereARolloutAsks(t *testing.T) {
	c := New()
	var started []Place
	reader := fake.NewClientBuilder().Build()
	fails := true
	c.Start = func(_ context.Context, p Place) (client.Reader, error) {
		if fails {
			return nil, errors.New("forbidden")
		}
		started = append(started, p)
		return reader, nil
	}
	shop, bank := Place{Kind: v1alpha1.ConfigurationConfigMap, Namespace: "shop"}, Place{Kind: v1alpha1.ConfigurationConfigMap, Namespace: "bank"}
	if _, err := c.Watch(t.Context(), shop); err == nil {
		t.Error("a watch that does not begin is taken for one")
	}
	fails = false
	for _, p := range []Place{shop, shop, bank, shop} {
		if got, err := c.Watch(t.Context(), p); got != reader || err != nil {
			t.Errorf("%v: %v %v", p, got, err)
		}
	}
	if diff := cmp.Diff([]Place{shop, bank}, started); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
