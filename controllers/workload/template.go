// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/rand"
)

// SameTemplate reports whether two pod templates mean the same pods: a semantic
// comparison without the label pod-template-hash, as in EqualIgnoreHash of
// k8s.io/kubernetes/pkg/controller/deployment/util. A comparison of hashes would
// call every workload changed after an upgrade of the API types.
func SameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return apiequality.Semantic.DeepEqual(withoutHash(a), withoutHash(b))
}

// withoutHash is a template to read, which shares everything but its labels with t.
func withoutHash(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, found := t.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; !found {
		return t
	}
	c := *t
	c.Labels = maps.Clone(t.Labels)
	delete(c.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	return &c
}

// Revision names a template: the value of the label pod-template-hash of its
// canary. It only has to be unique among the workload's ReplicaSets; whether two
// templates are the same is never read off it (see SameTemplate). The salt makes
// the revisions of two workloads differ whose Services select alike.
func Revision(salt string, t *corev1.PodTemplateSpec) (string, error) {
	b, err := json.Marshal(withoutHash(t))
	if err != nil {
		return "", fmt.Errorf("spec.template can't be encoded: %w", err)
	}
	h := fnv.New32a()
	// Writing to a hash never fails.
	_, _ = h.Write([]byte(salt))
	for {
		_, _ = h.Write([]byte{0})
		_, _ = h.Write(b)
		// Without a letter YAML would read it as a number.
		if name := rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10)); strings.Trim(name, "0123456789") != "" {
			return name, nil
		}
	}
}
