// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// keyAuthorities is the key of the authorities in the Secret. The others are those of
// every Secret with a certificate.
const keyAuthorities = "ca.crt"

// Secret is a Store in a Secret that exists. It is not made here, so that no component needs
// the right to make Secrets.
type Secret struct {
	// Client of the Secret's namespace.
	Client corev1client.SecretInterface
	Name   string
}

// Load reads the Secret.
func (s Secret) Load(ctx context.Context) (Bundle, string, error) {
	secret, err := s.Client.Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Bundle{}, "", fmt.Errorf("%w: create an empty Secret of that name; the chart does", err)
	}
	if err != nil {
		return Bundle{}, "", err
	}
	b := Bundle{
		Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey],
		Authorities: secret.Data[keyAuthorities],
	}
	return b, secret.ResourceVersion, nil
}

// Save writes the Secret.
func (s Secret) Save(ctx context.Context, b Bundle, version string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"data": map[string]any{ // bytes become base64
			corev1.TLSCertKey: b.Certificate, corev1.TLSPrivateKeyKey: b.Key, keyAuthorities: b.Authorities,
		},
	})
	if err != nil {
		return err
	}
	_, err = s.Client.Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// APIService is the Announcer to the aggregation layer.
type APIService struct {
	// Client of the cluster.
	Client dynamic.Interface
	// Name of the APIService.
	Name string
	// Service that it must lead to; another's is left alone.
	Service types.NamespacedName
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Announce writes the authorities into spec.caBundle. It does nothing when the
// APIService leads elsewhere: then another server serves the API, and this one is asked
// by clients that ask it directly.
func (a APIService) Announce(ctx context.Context, authorities []byte) error {
	client := a.Client.Resource(apiServices)
	found, err := client.Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	name, _, _ := unstructured.NestedString(found.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(found.Object, "spec", "service", "namespace")
	if a.Service != (types.NamespacedName{Namespace: namespace, Name: name}) {
		return nil
	}
	text, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle")
	if known, err := base64.StdEncoding.DecodeString(text); err == nil && bytes.Equal(known, authorities) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": found.GetResourceVersion()},
		"spec":     map[string]any{"caBundle": authorities},
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
