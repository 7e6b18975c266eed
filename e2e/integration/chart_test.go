// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/e2e/tools"
)

const (
	release       = "serin"
	operatorSpace = "serin-system"
	guardName     = "serin-hold-deployments"

	selectorsPolicy = "serin-selectors"

	configurationPolicy = "serin-configuration"
	policyAPI           = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
)

// renderChart renders the chart of the operator as helm install would.
func renderChart(ctx context.Context, flags ...string) ([]*unstructured.Unstructured, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	programs, err := checkout.Builder(os.Stderr).Build(ctx, tools.Helm)
	if err != nil {
		return nil, err
	}
	chart := filepath.Join("..", "..", "charts", "serin")
	args := append([]string{"template", release, chart, "--no-hooks", "--namespace", operatorSpace, "--api-versions", policyAPI}, flags...)
	out, err := exec.CommandContext(ctx, programs.Path("helm"), args...).Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	return decode(out)
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// kinds picks the objects of some kinds, in the order of the kinds.
func kinds(objects []*unstructured.Unstructured, names ...string) []client.Object {
	var out []client.Object
	for _, name := range names {
		for _, u := range objects {
			if u.GetKind() == name {
				out = append(out, u.DeepCopy())
			}
		}
	}
	if slices.Contains(names, "CustomResourceDefinition") && len(out) == 0 {
		panic("the chart has no CustomResourceDefinitions")
	}
	return out
}
