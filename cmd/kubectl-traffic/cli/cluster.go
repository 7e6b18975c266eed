// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/terminal"
)

// Bounds of what one command asks: a topology asks once for each resource.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// FieldManager is the owner of the fields that the plugin writes.
const FieldManager = "kubectl-traffic"

// Cluster is what the flags of kubectl choose: where to ask, and as whom.
type Cluster struct {
	flags *genericclioptions.ConfigFlags
	// Errs gets warnings of the API server.
	Errs   io.Writer
	Screen *terminal.Screen
}

// AddFlags adds the flags that name a cluster, as kubectl has them.
func (c *Cluster) AddFlags(root *cobra.Command) {
	c.flags = genericclioptions.NewConfigFlags(true)
	c.flags.AddFlags(root.PersistentFlags())
	// The folder is in the home of the user who generates the documentation.
	if f := root.PersistentFlags().Lookup("cache-dir"); f != nil {
		f.DefValue = "$HOME/.kube/cache"
	}
	Complete(root, "namespace", c.namespaces)
}

// Namespace is the one that was chosen, by a flag or the context.
func (c *Cluster) Namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Config says how to reach the cluster.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read how to reach the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(c.Errs, rest.WarningWriterOptions{Deduplicate: true})
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	return config, nil
}

// Client speaks to the cluster. It knows TrafficSplits in the version that is served.
func (c *Cluster) Client() (client.Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	mapper, err := c.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme(splitVersion(mapper))
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper, FieldOwner: FieldManager})
}

// Connect is Client with the namespace that was chosen.
func (c *Cluster) Connect() (client.Client, string, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, "", err
	}
	api, err := c.Client()
	return api, namespace, err
}

// NewScheme has the kinds that the commands read, with TrafficSplit in a version of the API.
func NewScheme(splits string) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme, v1alpha1.AddToScheme, splitv1.AddVersionToScheme(splits),
	} {
		errs = append(errs, add(scheme))
	}
	return scheme, errors.Join(errs...)
}

// splitVersion is Serin's own version of TrafficSplits where it is served, else what a
// mesh has brought.
func splitVersion(mapper meta.RESTMapper) string {
	own := splitv1.GroupVersion.Version
	mappings, err := mapper.RESTMappings(splitv1.GroupVersion.WithKind("TrafficSplit").GroupKind())
	if err != nil || len(mappings) == 0 ||
		slices.ContainsFunc(mappings, func(m *meta.RESTMapping) bool { return m.GroupVersionKind.Version == own }) {
		return own // the request itself says what is wrong
	}
	return mappings[0].GroupVersionKind.Version
}
