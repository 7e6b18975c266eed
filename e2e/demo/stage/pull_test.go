// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTheChartIsToldWhereToPullFrom(t *testing.T) {
	for name, test := range map[string]struct {
		pull *Pull
		want []string
	}{
		"the cluster has the images": {},
		"all images are pulled": {
			pull: &Pull{Registry: "10.0.0.1:5000"},
			want: []string{"--set", "image.registry=10.0.0.1:5000", "--set", "image.pullSecrets={serin-registry}", "--set", "proxy.image.pullSecrets={serin-registry}"},
		},
		"the cluster has that of the proxies": {
			pull: &Pull{Registry: "10.0.0.1:5000", OnlyManager: true},
			want: []string{"--set", "image.registry=10.0.0.1:5000", "--set", "image.pullSecrets={serin-registry}", "--set", "proxy.image.registry=docker.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, (&Stage{pull: test.pull}).pullFlags()); diff != "" {
				t.Errorf("flags of helm (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsOfTheNamespacePullWithThePassword(t *testing.T) {
	core := fake.NewClientset()
	s := &Stage{core: core, pull: &Pull{DockerConfig: []byte("{}")}}
	if err := s.allowPulls(t.Context(), Namespace); err != nil {
		t.Fatal(err)
	}
	secret, err := core.CoreV1().Secrets(Namespace).Get(t.Context(), pullSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if secret.Type != corev1.SecretTypeDockerConfigJson || string(secret.Data[corev1.DockerConfigJsonKey]) != "{}" {
		t.Errorf("the Secret is %s %q", secret.Type, secret.Data)
	}
	account, err := core.CoreV1().ServiceAccounts(Namespace).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: pullSecret}}, account.ImagePullSecrets); diff != "" {
		t.Errorf("Secrets of pods (-want +got):\n%s", diff)
	}
}

// cat stands for kubectl: it keeps what it is given.
const cat = "#!/bin/sh\nexec cat >\"$(dirname \"$0\")/applied\"\n"

func TestManifestsNameTheRegistry(t *testing.T) {
	root := t.TempDir()
	kubectl := filepath.Join(root, "kubectl")
	if err := os.WriteFile(kubectl, []byte(cat), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "app.yaml"), []byte("image: docker.io/serin-dev/demo-app:v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Stage{options: Options{Root: root, Kubectl: kubectl, Say: func(string) {}}, pull: &Pull{Registry: "10.0.0.1:5000"}}
	if err := s.applyPulled(t.Context(), "app.yaml"); err != nil {
		t.Fatal(err)
	}
	applied, err := os.ReadFile(filepath.Join(root, "applied"))
	if err != nil || string(applied) != "image: 10.0.0.1:5000/serin-dev/demo-app:v1\n" {
		t.Errorf("applied %q (%v)", applied, err)
	}
}
