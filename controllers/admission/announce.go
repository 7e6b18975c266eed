// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Announcer publishes to the kube-apiserver by which authorities the webhooks are known. It
// implements certificate.Announcer.
type Announcer struct {
	// Client reads from a cache.
	Client client.Client
	// Name of the MutatingWebhookConfiguration.
	Name string
}

// Announce writes the authorities into each webhook that lacks them.
func (a Announcer) Announce(ctx context.Context, authorities []byte) error {
	stored := &admissionv1.MutatingWebhookConfiguration{}
	if err := a.Client.Get(ctx, types.NamespacedName{Name: a.Name}, stored); err != nil {
		return err
	}
	wanted := stored.DeepCopy()
	changed := false
	for i := range wanted.Webhooks {
		bundle := &wanted.Webhooks[i].ClientConfig.CABundle
		changed = changed || !bytes.Equal(*bundle, authorities)
		*bundle = authorities
	}
	if !changed {
		return nil
	}
	return a.Client.Patch(ctx, wanted, client.StrategicMergeFrom(stored, client.MergeFromWithOptimisticLock{}))
}
