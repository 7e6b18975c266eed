// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// fromFiles reads files, and those in folders whose names end as manifests do.
func fromFiles(cmd *cobra.Command, names []string) (*source.Set, error) {
	set := source.NewSet()
	for _, name := range names {
		files := []string{name}
		if name != cli.Stdin {
			var err error
			if files, err = manifests(name); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			objects, err := cli.ReadObjects(cmd, file)
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				set.Add(file, o.Object)
			}
		}
	}
	return set, nil
}

// manifests are the files below a folder, or the file itself.
func manifests(name string) (files []string, err error) {
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if path == name || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: has no file that ends with .yaml, .yml or .json", name)
	}
	return files, err
}

// elsewhere are kinds that may be in another namespace than what refers to them.
var elsewhere = []string{"MetricTemplate", "AlertProvider"}

// fromCluster reads the objects of the namespace, and those of other namespaces that they
// may refer to.
func (m *migrate) fromCluster(ctx context.Context) (*source.Set, error) {
	api, namespace, err := m.cluster.Connect()
	if err != nil {
		return nil, err
	}
	set := source.NewSet()
	for _, k := range migration.Kinds() {
		in := namespace
		if slices.Contains(elsewhere, k.Name) {
			in = ""
		}
		list, err := listKind(ctx, api, k, in)
		if in == "" && apierrors.IsForbidden(err) {
			list, err = listKind(ctx, api, k, namespace)
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			set.Add("cluster", o.Object)
		}
	}
	return set, nil
}

// listKind are all objects of a kind; none when the cluster does not serve it.
func listKind(ctx context.Context, api client.Client, k migration.Kind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name + "List"})
	err := api.List(ctx, list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return list.Items, err
}
