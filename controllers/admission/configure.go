// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
)

// Configure has the pods of a version read the contents of ConfigMaps and Secrets that belong
// to it: where its annotation names a copy, the copy's name takes the place of the original's.
func Configure(r Request) []jsonpatch.Operation {
	named, has := annotation(r.Object, v1alpha1.AnnotationConfiguration)
	if !has {
		return nil
	}
	c := copies{of: configrevision.ParseMapping(named)}
	spec := at(r.Object, "spec")
	each(spec, "/spec", "volumes", func(volume any, path string) {
		c.name(volume, path, "configMap", "name", v1alpha1.ConfigurationConfigMap)
		c.name(volume, path, "secret", "secretName", v1alpha1.ConfigurationSecret)
		projected, _ := volume.(map[string]any)
		each(projected["projected"], path+"/projected", "sources", func(source any, path string) {
			c.name(source, path, "configMap", "name", v1alpha1.ConfigurationConfigMap)
			c.name(source, path, "secret", "name", v1alpha1.ConfigurationSecret)
		})
	})
	for _, containers := range []string{"containers", "initContainers"} {
		each(spec, "/spec", containers, c.container)
	}
	return c.changes
}

// copies collects the changes of a pod whose version has copies.
type copies struct {
	of      configrevision.Mapping
	changes []jsonpatch.Operation
}

func (c *copies) container(container any, path string) {
	each(container, path, "env", func(variable any, path string) {
		from, _ := variable.(map[string]any)
		c.name(from["valueFrom"], path+"/valueFrom", "configMapKeyRef", "name", v1alpha1.ConfigurationConfigMap)
		c.name(from["valueFrom"], path+"/valueFrom", "secretKeyRef", "name", v1alpha1.ConfigurationSecret)
	})
	each(container, path, "envFrom", func(source any, path string) {
		c.name(source, path, "configMapRef", "name", v1alpha1.ConfigurationConfigMap)
		c.name(source, path, "secretRef", "name", v1alpha1.ConfigurationSecret)
	})
}

// name replaces the name in a reference below an object, where that has one with a copy.
func (c *copies) name(object any, path, reference, field string, kind v1alpha1.ConfigurationKind) {
	below, _ := object.(map[string]any)
	name, _ := at(below, reference, field).(string)
	if by, found := c.of[configrevision.Reference{Kind: kind, Name: name}]; found {
		c.changes = append(c.changes, jsonpatch.NewOperation("replace", path+"/"+reference+"/"+field, by))
	}
}

// each visits the items of a list with their paths.
func each(object any, path, list string, visit func(item any, path string)) {
	below, _ := object.(map[string]any)
	items, _ := below[list].([]any)
	for i, item := range items {
		visit(item, path+"/"+list+"/"+strconv.Itoa(i))
	}
}
