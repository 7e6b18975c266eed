// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

var shared *controlplane.ControlPlane

func TestMain(m *testing.M) {
	began := time.Now()
	options := controlplane.Options{ControllerManager: true, FakeNode: &fakenode.Options{}, Audit: true}
	os.Exit(controlplane.Run(m, options, func(c *controlplane.ControlPlane) {
		fmt.Fprintf(os.Stderr, "control plane ready after %s\n", time.Since(began).Round(time.Millisecond))
		shared = c
	}))
}

func newClient(t *testing.T) (kubernetes.Interface, string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return client, namespace.Name
}

func makeDeployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.invalid/app:1"}}},
			},
		},
	}
}

func eventually(t *testing.T, what string, probe func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, probe); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestADeploymentBecomesAvailableAndItsPodsHaveDistinctAddresses(t *testing.T) {
	client, namespace := newClient(t)
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), makeDeployment(3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Deployment available", func(ctx context.Context) (bool, error) {
		got, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && got.Status.AvailableReplicas == 3, err
	})
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{}
	for _, pod := range pods.Items {
		addresses[pod.Status.PodIP] = true
	}
	if len(addresses) != 3 {
		t.Errorf("three pods have the addresses %v, want three different ones", addresses)
	}
}

func TestADeletedPodGoesAndIsReplaced(t *testing.T) {
	client, namespace := newClient(t)
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), makeDeployment(1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readyPod := func(ctx context.Context) (*corev1.Pod, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return nil, err
		}
		return &pods.Items[0], nil
	}
	var first *corev1.Pod
	eventually(t, "first pod", func(ctx context.Context) (bool, error) {
		var err error
		first, err = readyPod(ctx)
		return first != nil, err
	})
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "second pod", func(ctx context.Context) (bool, error) {
		second, err := readyPod(ctx)
		return second != nil && second.UID != first.UID, err
	})
}

func TestAUserHasOnlyTheRightsThatRBACGives(t *testing.T) {
	config, err := shared.ConfigFor("alice", "developers")
	if err != nil {
		t.Fatal(err)
	}
	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("alice lists pods: %v, want Forbidden", err)
	}
}

func TestARestartedAPIServerKeepsItsObjectsAndServesTheSameAddress(t *testing.T) {
	client, namespace := newClient(t)
	if err := shared.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace after a restart: %v", err)
	}
}

func TestTheAuditLogHasALinePerRequest(t *testing.T) {
	client, namespace := newClient(t)
	if _, err := client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []byte("/api/v1/namespaces/" + namespace + "/configmaps")
	eventually(t, "line in the audit log", func(context.Context) (bool, error) {
		content, err := os.ReadFile(shared.AuditLog)
		return bytes.Contains(content, want), err
	})
}
