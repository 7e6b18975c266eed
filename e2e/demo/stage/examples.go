// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// Names of the demo's objects, as the examples have them.
const (
	Namespace = "serin-demo"
	Name      = "website"
)

// Examples is what the story has to know of the manifests.
type Examples struct {
	// Replicas of the website.
	Replicas int
	// Steps are the weights of the Rollout.
	Steps []int32
}

// ReadExamples reads the manifests of a folder.
func ReadExamples(folder string) (Examples, error) {
	var deployment appsv1.Deployment
	var rollout serinv1alpha1.Rollout
	err := errors.Join(
		readFirst(filepath.Join(folder, "website.yaml"), &deployment),
		readFirst(filepath.Join(folder, "rollout.yaml"), &rollout),
	)
	if err != nil {
		return Examples{}, err
	}
	examples := Examples{Replicas: 1}
	if deployment.Spec.Replicas != nil {
		examples.Replicas = int(*deployment.Spec.Replicas)
	}
	for _, step := range rollout.Spec.Strategy.Steps {
		examples.Steps = append(examples.Steps, step.Weight)
	}
	return examples, nil
}

// readFirst decodes the first object of a file. Unknown fields are errors.
func readFirst(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read an example: %w", err)
	}
	document, err := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))).Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		return fmt.Errorf("decode %s: %w", filepath.Base(path), err)
	}
	return nil
}
