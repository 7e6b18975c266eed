// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions limits what the manager keeps in memory of Deployments: of their
// managed fields only those of Serin's managers, which tell who paused one, and
// routers whether a Deployment of theirs has drifted.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&appsv1.Deployment{}: {Transform: keepOwnFields}}
}

func keepOwnFields(object any) (any, error) {
	if d, ok := object.(*appsv1.Deployment); ok {
		d.ManagedFields = slices.DeleteFunc(d.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
			return !strings.HasPrefix(m.Manager, "serin-")
		})
	}
	return object, nil
}
