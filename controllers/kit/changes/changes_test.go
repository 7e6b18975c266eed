// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAFullBacklogDoesNotBlock(t *testing.T) {
	c := New()
	for range backlog + 10 {
		c.Notify(types.NamespacedName{Namespace: "shop", Name: "website"})
	}
	if len(c) != backlog {
		t.Errorf("%d wait", len(c))
	}
	if e := <-c.Changed(); e.Object.Name != "website" {
		t.Errorf("told of %v", e.Object)
	}
	Channel(nil).Notify(types.NamespacedName{}) // without a controller it is dropped
}
