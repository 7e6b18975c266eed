// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// digits of a digest in the name of a copy: 48 bits, of contents of one object of
// one workload.
const digits = 12

const maxName = 253

// CopyName names the copy of a content for one workload. Two workloads have two
// copies, so that each can drop its own.
func CopyName(source string, workload types.UID, digest string) string {
	h := sha256.New()
	entry(h, string(workload))
	entry(h, digest)
	suffix := "-" + hex.EncodeToString(h.Sum(nil))[:digits]
	return source[:min(len(source), maxName-len(suffix))] + suffix
}

// entry adds one string to a digest so that no other strings add up to the same.
func entry[T string | []byte](h hash.Hash, s T) {
	// Writing to a hash never fails.
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
	_, _ = h.Write([]byte(s))
}

func entries[T string | []byte](h hash.Hash, m map[string]T) {
	entry(h, hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(len(m)))))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		entry(h, k)
		entry(h, m[k])
	}
}

// DigestConfigMap tells contents apart; labels and annotations are none.
func DigestConfigMap(c *corev1.ConfigMap) string {
	h := sha256.New()
	entries(h, c.Data)
	entries(h, c.BinaryData)
	return hex.EncodeToString(h.Sum(nil))
}

// DigestSecret tells contents apart. A digest is not a secret's value, but is never
// shown either: names of copies are made of a digest of it and the workload's UID.
func DigestSecret(s *corev1.Secret) string {
	h := sha256.New()
	entry(h, string(s.Type))
	entries(h, s.Data)
	return hex.EncodeToString(h.Sum(nil))
}

// Keepable reports whether a Secret can be copied: the token of a service account
// is written by the control plane, for the one Secret that names the account.
func Keepable(s *corev1.Secret) bool { return s.Type != corev1.SecretTypeServiceAccountToken }

// Owner is whom the copies belong to: the workload, whose pods need them even when
// the Rollout is gone.
type Owner struct {
	APIVersion, Kind, Name string
	UID                    types.UID
}

// MakeConfigMap builds the copy of a ConfigMap. Labels and annotations stay behind:
// they may say who else looks after the original.
func MakeConfigMap(source *corev1.ConfigMap, rollout string, owner Owner) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metadata(source, rollout, owner, DigestConfigMap(source)),
		Data:       source.Data, BinaryData: source.BinaryData, Immutable: new(true),
	}
}

// MakeSecret builds the copy of a Secret.
func MakeSecret(source *corev1.Secret, rollout string, owner Owner) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metadata(source, rollout, owner, DigestSecret(source)),
		Type:       source.Type, Data: source.Data, Immutable: new(true),
	}
}

func metadata(source metav1.Object, rollout string, owner Owner, digest string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:   source.GetNamespace(),
		Name:        CopyName(source.GetName(), owner.UID, digest),
		Labels:      map[string]string{v1alpha1.LabelRollout: rollout, v1alpha1.LabelRole: v1alpha1.RoleConfiguration},
		Annotations: map[string]string{v1alpha1.AnnotationConfiguration: source.GetName()},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID,
		}},
	}
}
