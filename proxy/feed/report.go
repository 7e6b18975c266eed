// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// maxMessage is the bound of status.proxies[].message.
const maxMessage = 1024

// written is the last entry that was written, and the version of the split that
// came of it.
type written struct {
	entry   splitv1.ProxyStatus
	version string
}

// report writes the agent's entry in the split's status when it is not there
// already.
func (f *Feed) report(ctx context.Context, split *splitv1.TrafficSplit) error {
	f.mu.Lock()
	served := f.served
	f.mu.Unlock()
	if served == nil {
		return nil
	}
	entry := splitv1.ProxyStatus{
		Name: f.Pod, ObservedGeneration: served.Generation, Configuration: served.Configuration, Message: bounded(served.Message),
	}
	if slices.Contains(split.Status.Proxies, entry) {
		return nil
	}
	if f.written.entry == entry && older(split.ResourceVersion, f.written.version) {
		return nil // the cache has not seen what was written
	}
	patch := statusPatch(split, entry)
	err := f.Cluster.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch),
		client.FieldOwner(f.Pod), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("report what is served: %w", err)
	}
	f.written = written{entry: entry, version: patch.GetResourceVersion()}
	return nil
}

// statusPatch is the part of the split that the agent owns. The UID keeps it from
// another split of the same name.
func statusPatch(split *splitv1.TrafficSplit, entry splitv1.ProxyStatus) *unstructured.Unstructured {
	proxy := map[string]any{"name": entry.Name, "observedGeneration": entry.ObservedGeneration}
	if entry.Configuration != "" {
		proxy["configuration"] = entry.Configuration
	}
	if entry.Message != "" {
		proxy["message"] = entry.Message
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"proxies": []any{proxy}},
	}}
	patch.SetGroupVersionKind(splitv1.GroupVersion.WithKind("TrafficSplit"))
	patch.SetNamespace(split.Namespace)
	patch.SetName(split.Name)
	patch.SetUID(split.UID)
	return patch
}

// older tells whether version a of an object came before version b. Versions that
// can't be compared count as not older, which costs a write too many at worst.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// bounded makes a message fit the status.
func bounded(message string) string {
	message = strings.ToValidUTF8(message, "?")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return message
}
