// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/demo/story"
)

// clusterLimit bounds how long the API may take to do what a test waits for.
const clusterLimit = time.Minute

// TestOnAControlPlane sees and removes objects of a real API server. Its parts
// follow each other on one control plane.
func TestOnAControlPlane(t *testing.T) {
	plane, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s, err := New(Options{Kubeconfig: plane.Kubeconfig, Clock: clock.RealClock{}, Say: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	applyFolder(t, s, "../../../config/crd")
	if err := s.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := s.watcher.start(t.Context(), plane.Config, s.api.Scheme()); err != nil {
		t.Fatal(err)
	}
	t.Run("a snapshot of nothing has nothing and no problem", func(t *testing.T) {
		got, err := s.Next(t.Context())
		if err != nil || got.Rollout != nil || got.Split != nil || got.Problem != "" || len(got.Pods) != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("what is applied is seen", func(t *testing.T) { seesWhatIsApplied(t, s) })
	t.Run("a load generator that does not answer is a problem, after a while", func(t *testing.T) {
		s.watcher.expectLoad()
		awaitSnapshot(t, s, "the problem", func(got story.Snapshot) bool { return got.Problem != "" })
	})
	t.Run("what nobody gives back is removed", func(t *testing.T) { removesWhatIsLeft(t, s) })
}

func seesWhatIsApplied(t *testing.T, s *Stage) {
	t.Helper()
	rollout := &serinv1alpha1.Rollout{}
	if err := readFirst(filepath.Join(examplesFolder, "rollout.yaml"), rollout); err != nil {
		t.Fatal(err)
	}
	rollout.Finalizers = []string{serinv1alpha1.Finalizer}
	set := &appsv1.Deployment{}
	if err := readFirst(filepath.Join(examplesFolder, "website.yaml"), set); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{rollout, set} {
		if err := s.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	got := awaitSnapshot(t, s, "the Rollout and the pods", func(got story.Snapshot) bool {
		return got.Rollout != nil && len(got.Pods) == 4
	})
	pod := got.Pods[0]
	pod.Name, pod.UID, pod.Revision = "", "", ""
	if diff := cmp.Diff(story.Pod{Version: story.First, Owner: story.OwnerDeployment}, pod); diff != "" {
		t.Error(diff)
	}
}

// removesWhatIsLeft deletes the namespace while an object has a finalizer that
// nobody takes away.
func removesWhatIsLeft(t *testing.T, s *Stage) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := s.api.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := s.waitGone(t.Context(), namespace, time.Second); err != nil {
		t.Error(err)
	}
}

func awaitSnapshot(t *testing.T, s *Stage, what string, there func(story.Snapshot) bool) story.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterLimit)
	defer cancel()
	for {
		got, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("%s was not seen: %v", what, err)
		}
		if there(got) {
			return got
		}
	}
}

// applyFolder creates the objects of a folder and waits until their kinds are served.
func applyFolder(t *testing.T, s *Stage, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in %s: %v", folder, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	waitServed(t, s)
}

func waitServed(t *testing.T, s *Stage) {
	t.Helper()
	deadline := time.Now().Add(clusterLimit)
	tick := time.NewTicker(look)
	defer tick.Stop()
	for s.api.List(t.Context(), &serinv1alpha1.RolloutList{}) != nil {
		if time.Now().After(deadline) {
			t.Fatal("the definitions are not served")
		}
		<-tick.C
	}
}
