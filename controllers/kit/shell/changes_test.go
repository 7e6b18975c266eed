// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAllEventsPassButUpdatesThatNoReaderOfTheCacheSees(t *testing.T) {
	of := func(version string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "website", ResourceVersion: version}, Status: appsv1.DeploymentStatus{Replicas: replicas}}
	}
	p := Changes()
	for name, test := range map[string]struct{ got, want bool }{
		"it is created":              {p.Create(event.CreateEvent{Object: of("1", 1)}), true},
		"it is deleted":              {p.Delete(event.DeleteEvent{Object: of("1", 1)}), true},
		"another version of it":      {p.Update(event.UpdateEvent{ObjectOld: of("1", 1), ObjectNew: of("2", 1)}), false},
		"another number of its pods": {p.Update(event.UpdateEvent{ObjectOld: of("1", 1), ObjectNew: of("2", 2)}), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: passes: %v, want %v", name, test.got, test.want)
		}
	}
}
