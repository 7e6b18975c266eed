// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// content is what pods can read of a ConfigMap or a Secret.
type content struct {
	text      map[string]string
	binary    map[string][]byte
	kind      corev1.SecretType
	immutable bool
}

func contentOf(o *unstructured.Unstructured) (content, bool) {
	if o.GetKind() == configMapKind {
		c, ok := as[corev1.ConfigMap](o)
		if !ok {
			return content{}, false
		}
		return content{text: c.Data, binary: c.BinaryData, immutable: c.Immutable != nil && *c.Immutable}, true
	}
	s, ok := as[corev1.Secret](o)
	if !ok {
		return content{}, false
	}
	// The API server keeps stringData as data, over what is there.
	data := map[string][]byte{}
	maps.Copy(data, s.Data)
	for k, v := range s.StringData {
		data[k] = []byte(v)
	}
	kind := s.Type
	if kind == "" {
		kind = corev1.SecretTypeOpaque
	}
	return content{binary: data, kind: kind, immutable: s.Immutable != nil && *s.Immutable}, true
}

func (c content) same(other content) bool {
	return apiequality.Semantic.DeepEqual(c.text, other.text) &&
		apiequality.Semantic.DeepEqual(c.binary, other.binary) && c.kind == other.kind
}

// copyOf builds the copy of a content. Labels and annotations stay behind: they say
// who looks after the original.
func copyOf(r reference, namespace, name string, c content) (*unstructured.Unstructured, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	immutable := true
	var object any = &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: r.kind}, ObjectMeta: meta,
		Data: c.text, BinaryData: c.binary, Immutable: &immutable,
	}
	if r.kind == secretKind {
		object = &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: r.kind}, ObjectMeta: meta,
			Type: c.kind, Data: c.binary, Immutable: &immutable,
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: fields}, err
}

// digits of a digest in the name of a copy: 40 bits, of contents of one object in
// the lifetime of one CanaryRelease.
const digits = 10

const maxName = 253

// copyName is another one for each content, since copies never change.
func copyName(key []byte, r reference, c content) (string, error) {
	digest, err := digestOf(key, r.kind, r.name, c.text, c.binary, c.kind)
	if err != nil {
		return "", err
	}
	suffix := "-canary-" + digest[:digits]
	return r.name[:min(len(r.name), maxName-len(suffix))] + suffix, nil
}

// digestOf names things for those who have the key. Without it no user can try values
// until one has the same name.
func digestOf(key []byte, things ...any) (string, error) {
	// Maps are encoded in the order of their keys.
	encoded, err := json.Marshal(things)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(encoded) // never fails
	return hex.EncodeToString(h.Sum(nil)), nil
}
