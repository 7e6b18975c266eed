// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

const examplesFolder = "../../examples"

// The demo has a namespace of its own, and is played by its own test.
const demoFolder = "demo"

// Each folder of examples is applied to a namespace of its own, and what its Rollouts name
// is there.
func TestTheExamplesAreAdmitted(t *testing.T) {
	t.Parallel()
	for kind, plural := range map[string]string{
		"argoproj.io/v1alpha1 Application":             "applications",
		"source.toolkit.fluxcd.io/v1 GitRepository":    "gitrepositories",
		"kustomize.toolkit.fluxcd.io/v1 Kustomization": "kustomizations",
	} {
		version, name, _ := strings.Cut(kind, " ")
		newScene(t).serve(version, name, plural)
	}
	for _, folder := range exampleFolders(t) {
		t.Run(folder, func(t *testing.T) {
			s := newScene(t)
			files, err := filepath.Glob(filepath.Join(examplesFolder, folder, "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "\nkind: Freeze") { // it would concern other tests
					s.does("rollout lint -f " + file)
					continue
				}
				s.apply(text)
			}
			s.checkReferences()
		})
	}
}

// exampleFolders are those that have manifests.
func exampleFolders(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(examplesFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(examplesFolder, path)
		if name == demoFolder {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.yaml")); len(files) > 0 {
			folders = append(folders, name)
		}
		return err
	})
	if err != nil || len(folders) < 12 {
		t.Fatal(folders, err)
	}
	return folders
}

// checkReferences: what the Rollouts of the namespace name is there, and their Service selects
// the pods of their Deployment.
func (s *scene) checkReferences() {
	s.Helper()
	var rollouts v1alpha1.RolloutList
	if err := admin.List(s.Context(), &rollouts, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range rollouts.Items {
		spec := rollouts.Items[i].Spec
		if pair := spec.Services; pair != nil {
			for _, name := range []string{spec.Service, pair.Stable, pair.Canary} {
				s.exists(name, &corev1.Service{})
			}
			continue
		}
		if spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease { // the chart has the Service
			s.exists(spec.WorkloadRef.Name, &v1alpha1.CanaryRelease{})
			continue
		}
		d, svc := &appsv1.Deployment{}, &corev1.Service{}
		s.exists(spec.WorkloadRef.Name, d)
		s.exists(spec.Service, svc)
		if !labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			s.Errorf("the Service %s does not select the pods of the Deployment %s", svc.Name, d.Name)
		}
		for _, step := range spec.Strategy.Steps {
			for _, group := range step.Matches {
				s.exists(group, &specsv1.HTTPRouteGroup{})
			}
		}
		for _, ref := range spec.RouteRefs {
			version := map[bool]string{true: "networking.istio.io/v1", false: "gateway.networking.k8s.io/v1"}[ref.Kind == "VirtualService"]
			s.exists(ref.Name, unstructuredOf(version, string(ref.Kind)))
		}
		if spec.Analysis == nil {
			continue
		}
		for _, ref := range spec.Analysis.TemplateRefs {
			s.exists(ref.Name, &v1alpha1.AnalysisTemplate{})
		}
	}
}

func (s *scene) exists(name string, o client.Object) {
	s.Helper()
	if err := admin.Get(s.Context(), s.key(name), o); apierrors.IsNotFound(err) {
		s.Errorf("a Rollout names %T %s, which is not there", o, name)
	} else if err != nil {
		s.Error(err)
	}
}
