// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/tools"
	"github.com/serin-dev/serin/traffic"
)

// argoPair and argoDifference are the input and output of e2e/tools/argocddiff.
type argoPair struct {
	Config    *unstructured.Unstructured `json:"config"`
	Live      json.RawMessage            `json:"live"`
	Predicted json.RawMessage            `json:"predicted"`
}

type argoDifference struct {
	Client, Server *struct{ From, To json.RawMessage }
	Health         string
}

// inGit are the manifests of a scene, as Git has them.
func inGit(t *testing.T, image string) []*unstructured.Unstructured {
	t.Helper()
	d := deployment("website", 4)
	d.Spec.Template.Spec.Containers[0].Image = image
	var out []*unstructured.Unstructured
	for _, o := range []client.Object{d, service("website"), newRollout(v1alpha1.Step{Weight: 20, Hold: "1h"}, v1alpha1.Step{Weight: 60, Hold: "1h"})} {
		kinds, _, err := newScheme().ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		delete(content, "status")
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(kinds[0])
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
		out = append(out, u)
	}
	return out
}

func manifest(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var out []string
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

// argo is what Argo CD makes of each object of Git, by kind.
func (s *scene) argo(program string, git []*unstructured.Unstructured) map[string]argoDifference {
	s.Helper()
	var pairs []argoPair
	for _, o := range git {
		o = o.DeepCopy()
		o.SetNamespace(s.namespace)
		live := s.mustRead("", "get", strings.ToLower(o.GetKind()), o.GetName(), "-o", "json", "--show-managed-fields")
		predicted := s.mustRead(manifest(s.T, o), "apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=argocd-controller",
			"--dry-run=server", "-o", "json", "--show-managed-fields")
		pairs = append(pairs, argoPair{o, live, predicted})
	}
	input, err := json.Marshal(pairs)
	if err != nil {
		s.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(s.Context(), program)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	output, err := cmd.Output()
	if err != nil {
		s.Fatalf("%v\n%s", err, &stderr)
	}
	var differences []argoDifference
	if err := json.Unmarshal(output, &differences); err != nil {
		s.Fatal(err)
	}
	out := map[string]argoDifference{}
	for i, o := range git {
		out[o.GetKind()] = differences[i]
	}
	return out
}

// mustRead is what kubectl prints to a cluster admin.
func (s *scene) mustRead(manifest string, args ...string) json.RawMessage {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), plane.Programs.Path("kubectl"), append([]string{"--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(manifest), &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("kubectl %v: %v\n%s", args, err, &stderr)
	}
	return out
}

// TestArgoCDSeesNoDriftInTheMiddleOfARelease: the Deployment is paused and annotated, the
// Service has a key more in its selector, the Rollout a status and a finalizer. What Argo CD
// and Flux apply on the server's side changes nothing.
func TestArgoCDSeesNoDriftInTheMiddleOfARelease(t *testing.T) {
	t.Parallel()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := checkout.Builder(io.Discard).Build(t.Context(), tools.ArgoCDDiff)
	if err != nil {
		t.Fatal(err)
	}
	program := programs.Path("argocddiff")
	p := begin(t, func(c *cast) { c.guarded = true })
	v1, v2 := inGit(t, imageV1), inGit(t, imageV2)
	p.mustRead(manifest(t, v1...), "apply", "-f", "-", "-o", "json")
	p.noDrift(program, "between releases", v1, "Healthy")

	p.mustRead(manifest(t, v2...), "apply", "-f", "-", "-o", "json")
	p.held(0)
	if d := p.deployment(); !d.Spec.Paused || d.Annotations[v1alpha1.AnnotationRollout] == "" {
		t.Fatalf("the Deployment is not paused and annotated: %+v", d.ObjectMeta)
	}
	p.noDrift(program, "in the middle of a release", v2, "Suspended")
	p.fluxChangesNothing(v2[1])
	p.finish(4)
	p.noDrift(program, "after the release", v2, "Healthy")
}

// fluxChangesNothing applies the Service as Flux does: at first it takes the fields, and after
// that the write is none.
func (p *stage) fluxChangesNothing(service *unstructured.Unstructured) {
	p.Helper()
	var versions []string
	for range 3 {
		out := p.mustRead(manifest(p.T, service), "apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-o", "json")
		var applied corev1.Service
		if err := json.Unmarshal(out, &applied); err != nil {
			p.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"app": "website", traffic.LabelProxy: "website"}, applied.Spec.Selector); diff != "" {
			p.Errorf("after a server-side apply the Service selects something else (-want +got):\n%s", diff)
		}
		versions = append(versions, applied.ResourceVersion)
	}
	if versions[1] != versions[2] {
		p.Errorf("what Flux applies again and again changes the Service: versions %v", versions)
	}
}

// noDrift wants Argo CD to see no difference, and the Deployment with a health.
func (p *stage) noDrift(program, when string, git []*unstructured.Unstructured, health string) {
	p.Helper()
	all := p.argo(program, git)
	for kind, d := range all {
		if d.Client != nil {
			p.Errorf("%s, Argo CD would change the %s\nfrom %s\nto %s", when, kind, d.Client.From, d.Client.To)
		}
		if d.Server != nil {
			p.Errorf("%s, Argo CD would change the %s by server-side apply\nfrom %s\nto %s", when, kind, d.Server.From, d.Server.To)
		}
	}
	got := all["Deployment"].Health
	isHealth := func(context.Context) bool { got = p.argo(program, git)["Deployment"].Health; return got == health }
	if got != health && !p.poll(isHealth) { // the controller of Deployments may be behind
		p.Errorf("%s, Argo CD calls the Deployment %s, want %s", when, got, health)
	}
}
