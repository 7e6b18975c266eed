// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// MaxReferences is how many objects a template may refer to; the status lists as many.
const MaxReferences = 64

// Reference names a ConfigMap or a Secret in the namespace of the workload.
type Reference = v1alpha1.ConfigurationReference

// References are the objects whose content the pods of a template read, as far as
// the settings concern them, in the order of kind and name. They are the places
// that the admission policy of the chart knows: volumes, projected volumes and
// variables of containers. Credentials for pulling images are none of the app's
// configuration.
func References(t *corev1.PodTemplateSpec, settings *v1alpha1.Configuration) []Reference {
	if settings == nil {
		return nil
	}
	c := collector{settings: settings}
	for i := range t.Spec.Volumes {
		c.volume(&t.Spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range containers {
			c.container(&containers[i])
		}
	}
	slices.SortFunc(c.found, compare)
	return slices.Compact(c.found)
}

func compare(a, b Reference) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
}

type collector struct {
	settings *v1alpha1.Configuration
	found    []Reference
}

func (c *collector) add(kind v1alpha1.ConfigurationKind, name string) {
	r := Reference{Kind: kind, Name: name}
	if name == "" || !slices.Contains(c.settings.Kinds, kind) || slices.Contains(c.settings.Except, r) {
		return
	}
	c.found = append(c.found, r)
}

func (c *collector) volume(v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		c.add(v1alpha1.ConfigurationConfigMap, v.ConfigMap.Name)
	case v.Secret != nil:
		c.add(v1alpha1.ConfigurationSecret, v.Secret.SecretName)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				c.add(v1alpha1.ConfigurationConfigMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				c.add(v1alpha1.ConfigurationSecret, s.Secret.Name)
			}
		}
	}
}

func (c *collector) container(container *corev1.Container) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			c.add(v1alpha1.ConfigurationConfigMap, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			c.add(v1alpha1.ConfigurationSecret, from.SecretRef.Name)
		}
	}
	for _, env := range container.Env {
		from := env.ValueFrom
		if from != nil && from.ConfigMapKeyRef != nil {
			c.add(v1alpha1.ConfigurationConfigMap, from.ConfigMapKeyRef.Name)
		}
		if from != nil && from.SecretKeyRef != nil {
			c.add(v1alpha1.ConfigurationSecret, from.SecretKeyRef.Name)
		}
	}
}
