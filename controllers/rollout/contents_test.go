// SPDX-License-Identifier: Apache-2.0

package rollout

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

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
)

func TestAContentIsReadAgainOnlyWhenItHasChanged(t *testing.T) {
	c := newContents()
	object := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "1", ResourceVersion: version}}
	}
	now := time.Unix(1e9, 0)
	if _, known := c.digest(object("1")); known {
		t.Error("known before it was read")
	}
	c.learn(object("1"), "a", now)
	if d, known := c.digest(object("1")); !known || d != "a" {
		t.Errorf("%q, %v", d, known)
	}
	if _, known := c.digest(object("2")); known {
		t.Error("another version is taken for the one that was read")
	}
	if at := c.changedAt(object("1")); !at.IsZero() {
		t.Errorf("changed at %v, when it was read first", at)
	}
	c.learn(object("2"), "a", now.Add(time.Second))
	if at := c.changedAt(object("2")); !at.IsZero() {
		t.Errorf("changed at %v, with the same content", at)
	}
	for i := range 30 { // what changes all the time
		c.learn(object("3"), string(rune('b'+i)), now.Add(time.Duration(2+i)*time.Second))
	}
	if at := c.changedAt(object("3")); !at.Equal(now.Add(2 * time.Second)) {
		t.Errorf("changed at %v, want the first of many", at)
	}
}

func TestAChangedObjectConcernsWhoReadsItAndWhoItIsACopyFor(t *testing.T) {
	c := newContents()
	app := configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"}
	c.use(types.NamespacedName{Namespace: "shop", Name: "website"}, []configrevision.Reference{app})
	c.use(types.NamespacedName{Namespace: "other", Name: "website"}, []configrevision.Reference{app})
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "1"}}
	if got := c.changed(t.Context(), app.Kind, object); len(got) != 1 || got[0].Namespace != "shop" {
		t.Errorf("concerns %v", got)
	}
	if got := c.changed(t.Context(), v1alpha1.ConfigurationSecret, object); len(got) != 0 {
		t.Errorf("a Secret of the same name concerns %v", got)
	}
	object.Name, object.Labels = "app-1", map[string]string{v1alpha1.LabelRollout: "website"}
	if got := c.changed(t.Context(), app.Kind, object); len(got) != 1 || got[0].Name != "website" {
		t.Errorf("a copy concerns %v", got)
	}
	c.learn(object, "a", time.Unix(1e9, 0))
	object.Labels = nil
	c.changed(t.Context(), app.Kind, object)
	if len(c.digests) != 0 {
		t.Error("a digest that no Rollout needs is kept")
	}
}

func TestAPlaceIsWatchedOnceAndOnlyWhereARolloutAsks(t *testing.T) {
	c := newContents()
	var started []place
	reader := fake.NewClientBuilder().Build()
	fails := true
	c.start = func(_ context.Context, p place) (client.Reader, error) {
		if fails {
			return nil, errors.New("forbidden")
		}
		started = append(started, p)
		return reader, nil
	}
	shop, bank := place{v1alpha1.ConfigurationConfigMap, "shop"}, place{v1alpha1.ConfigurationConfigMap, "bank"}
	if _, err := c.watch(t.Context(), shop); err == nil {
		t.Error("a watch that does not begin is taken for one")
	}
	fails = false
	for _, p := range []place{shop, shop, bank, shop} {
		if got, err := c.watch(t.Context(), p); got != reader || err != nil {
			t.Errorf("%v: %v %v", p, got, err)
		}
	}
	if diff := cmp.Diff([]place{shop, bank}, started, cmp.AllowUnexported(place{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
