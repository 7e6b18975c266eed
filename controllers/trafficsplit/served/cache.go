// SPDX-License-Identifier: Apache-2.0

package served

import (
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// CacheOptions are what the cache does to TrafficSplits.
// Where they have no status, it is read from the annotation, so that a reader of
// the cache finds it in its place.
func CacheOptions(served traffic.Served) map[client.Object]cache.ByObject {
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
