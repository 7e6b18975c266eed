// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// statusManager owns the annotation with the status, apart from what the controller
// writes with other patches.
const statusManager = FieldManager + "-status"

// ServedCacheOptions are, beside CacheOptions, what the cache does to TrafficSplits.
// Where they have no status, it is read from the annotation, so that a reader of
// the cache finds it in its place.
func ServedCacheOptions(served traffic.Served) map[client.Object]cache.ByObject {
	if !served.NoStatus {
		return nil
	}
	return map[client.Object]cache.ByObject{&splitv1.TrafficSplit{}: {Transform: transformSplit}}
}

// transformSplit fills the status in. An annotation that can't be read is no status: it
// is written anew.
func transformSplit(object any) (any, error) {
	split, ok := object.(*splitv1.TrafficSplit)
	if !ok {
		return object, nil
	}
	split.ManagedFields = nil
	var status splitv1.TrafficSplitStatus
	if json.Unmarshal([]byte(split.Annotations[splitv1.AnnotationStatus]), &status) != nil {
		status = splitv1.TrafficSplitStatus{}
	}
	split.Status = status
	return split, nil
}

// annotateStatus writes the status of a split that has none of its own.
func (r *Reconciler) annotateStatus(ctx context.Context, config *unstructured.Unstructured, next splitv1.TrafficSplitStatus) error {
	next.Proxies = nil
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	config.SetAnnotations(map[string]string{splitv1.AnnotationStatus: string(text)})
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(statusManager), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	return client.IgnoreNotFound(err)
}
