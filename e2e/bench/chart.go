// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var errNoManager = errors.New("the chart has no Deployment of the manager")

// renderChart renders the chart as helm install would.
func renderChart(ctx context.Context, helm, chart string) ([]*unstructured.Unstructured, error) {
	out, err := exec.CommandContext(ctx, helm, "template", releaseName, chart, "--no-hooks",
		"--namespace", operatorSpace, "--api-versions", policyAPI).Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the rendered chart: %w", err)
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// installed are the kinds that are created, in this order. The Deployment and its
// budget are not: the operator runs as a process.
var installed = []string{
	"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

func inOrder(chart []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range installed {
		for _, u := range chart {
			if u.GetKind() == kind {
				out = append(out, u)
			}
		}
	}
	return out
}

// command is how the chart runs the manager: arguments, and the environment.
func command(chart []*unstructured.Unstructured) (args, env []string, err error) {
	i := slices.IndexFunc(chart, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
	if i < 0 {
		return nil, nil, errNoManager
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chart[i].Object, d); err != nil {
		return nil, nil, fmt.Errorf("read the Deployment of the manager: %w", err)
	}
	if len(d.Spec.Template.Spec.Containers) != 1 {
		return nil, nil, errNoManager
	}
	c := d.Spec.Template.Spec.Containers[0]
	// What the kubelet would fill in.
	fill := strings.NewReplacer("$(POD_NAMESPACE)", operatorSpace, "$(NODE_ADDRESSES)", nodeAddress)
	for _, arg := range c.Args {
		args = append(args, fill.Replace(arg))
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	return args, env, nil
}

// nodeAddress is the fake node's.
const nodeAddress = "10.250.0.1"
