// SPDX-License-Identifier: Apache-2.0

package compare

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	configMapKind = "ConfigMap"
	secretKind    = "Secret"
)

// reference names a ConfigMap or a Secret of the release's namespace.
type reference struct{ kind, name string }

func (r reference) String() string { return r.kind + "/" + r.name }

// rename calls a function with each ConfigMap and Secret that the pods of a template
// read, or that the kubelet reads for them, and puts in the name that it returns.
func rename(spec *corev1.PodSpec, name func(reference) string) {
	v := visitor{name}
	for i := range spec.ImagePullSecrets {
		v.secret(&spec.ImagePullSecrets[i].Name)
	}
	for i := range spec.Volumes {
		v.volume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			v.container(&containers[i])
		}
	}
}

// references are those of a template, each once, in the order of the template.
func references(spec *corev1.PodSpec) []reference {
	var all []reference
	seen := map[reference]bool{}
	rename(spec, func(r reference) string {
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
		}
		return r.name
	})
	return all
}

type visitor struct{ name func(reference) string }

func (v visitor) configMap(name *string) { v.visit(configMapKind, name) }

func (v visitor) secret(name *string) { v.visit(secretKind, name) }

// visit leaves names alone that stay the same: a template may be another tool's.
func (v visitor) visit(kind string, name *string) {
	if *name == "" {
		return
	}
	if renamed := v.name(reference{kind, *name}); renamed != *name {
		*name = renamed
	}
}

func (v visitor) volume(volume *corev1.Volume) {
	switch {
	case volume.ConfigMap != nil:
		v.configMap(&volume.ConfigMap.Name)
	case volume.Secret != nil:
		v.secret(&volume.Secret.SecretName)
	case volume.CSI != nil && volume.CSI.NodePublishSecretRef != nil:
		v.secret(&volume.CSI.NodePublishSecretRef.Name)
	case volume.Projected != nil:
		for i := range volume.Projected.Sources {
			v.projection(&volume.Projected.Sources[i])
		}
	}
}

func (v visitor) projection(source *corev1.VolumeProjection) {
	if source.ConfigMap != nil {
		v.configMap(&source.ConfigMap.Name)
	}
	if source.Secret != nil {
		v.secret(&source.Secret.Name)
	}
}

func (v visitor) container(c *corev1.Container) {
	for i := range c.EnvFrom {
		if c.EnvFrom[i].ConfigMapRef != nil {
			v.configMap(&c.EnvFrom[i].ConfigMapRef.Name)
		}
		if c.EnvFrom[i].SecretRef != nil {
			v.secret(&c.EnvFrom[i].SecretRef.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from != nil && from.ConfigMapKeyRef != nil {
			v.configMap(&from.ConfigMapKeyRef.Name)
		}
		if from != nil && from.SecretKeyRef != nil {
			v.secret(&from.SecretKeyRef.Name)
		}
	}
}
