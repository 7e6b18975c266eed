// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
)

// Pull is the registry that all images are pulled from.
type Pull struct {
	// Registry is its host and port.
	Registry string
	// DockerConfig has its password, as a Secret of the type kubernetes.io/dockerconfigjson does.
	DockerConfig []byte
	// OnlyManager leaves the proxies' image, which the cluster has.
	OnlyManager bool
}

const (
	// pullSecret is the name of the Secrets with the password.
	pullSecret = "serin-registry"
	// publicRegistry is what the manifests name.
	publicRegistry = "docker.io"
	fieldManager   = "serin-demo"
)

// PullFrom has images pulled from a registry. Else the cluster has them.
func (s *Stage) PullFrom(pull Pull) { s.pull = &pull }

// pullFlags have Serin's own images pulled from the registry, those of proxies too.
func (s *Stage) pullFlags() []string {
	if s.pull == nil {
		return nil
	}
	flags := []string{"--set", "image.registry=" + s.pull.Registry, "--set", "image.pullSecrets={" + pullSecret + "}"}
	if s.pull.OnlyManager {
		return append(flags, "--set", "proxy.image.registry="+publicRegistry)
	}
	return append(flags, "--set", "proxy.image.pullSecrets={"+pullSecret+"}")
}

// allowPulls makes the Secret in a namespace, which is made where it is missing. Pods that
// name no ServiceAccount pull with it.
func (s *Stage) allowPulls(ctx context.Context, namespace string) error {
	if s.pull == nil {
		return nil
	}
	core, force := s.core.CoreV1(), metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := core.Namespaces().Apply(ctx, coreac.Namespace(namespace), force); err != nil {
		return fmt.Errorf("make the namespace %s: %w", namespace, err)
	}
	secret := coreac.Secret(pullSecret, namespace).WithType(corev1.SecretTypeDockerConfigJson).
		WithData(map[string][]byte{corev1.DockerConfigJsonKey: s.pull.DockerConfig})
	if _, err := core.Secrets(namespace).Apply(ctx, secret, force); err != nil {
		return fmt.Errorf("make the Secret to pull images with in %s: %w", namespace, err)
	}
	account := coreac.ServiceAccount("default", namespace).WithImagePullSecrets(coreac.LocalObjectReference().WithName(pullSecret))
	if _, err := core.ServiceAccounts(namespace).Apply(ctx, account, force); err != nil {
		return fmt.Errorf("have pods of %s use the Secret: %w", namespace, err)
	}
	return nil
}

// applyPulled applies a manifest whose images are pulled from the registry.
func (s *Stage) applyPulled(ctx context.Context, file string) error {
	content, err := os.ReadFile(filepath.Join(s.options.Root, file))
	if err != nil {
		return fmt.Errorf("read an example: %w", err)
	}
	content = bytes.ReplaceAll(content, []byte(publicRegistry+"/"), []byte(s.pull.Registry+"/"))
	s.options.Say(fmt.Sprintf("$ sed s,%s/,%s/, %s | kubectl apply -f -", publicRegistry, s.pull.Registry, file))
	return s.run(ctx, bytes.NewReader(content), s.options.Kubectl, s.connection("--context", []string{"apply", "-f", "-"}))
}
