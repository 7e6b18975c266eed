// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/e2e/diagnosis"
	"github.com/serin-dev/serin/e2e/judgement"
)

const (
	// siteName is the name of the website's objects.
	siteName = "website"

	// look is how often the state is read. It is shorter than any hold of a step.
	look = 250 * time.Millisecond
	// stateLimit bounds how long a release may take to get to a state.
	stateLimit = 4 * time.Minute
	// timeOfDay is how times are logged.
	timeOfDay = "15:04:05.000"
)

// site is what a scenario works on, in a namespace of its own.
type site struct {
	*installation
	t *attempt
	// namespace of the site, and folder of its files in testdata.
	namespace, folder string
	// canary is the version that is being released, stable the one beside it.
	canary, stable string
	// controlSelects tells that the Service of the control has a selector, so that what befalls
	// nodes befalls it too.
	controlSelects bool
	// planted is the loss that the test itself causes, "" for none: see plant_test.go.
	planted string
	// record is what is judged at the end.
	record judgement.Record
	// before is the namespace as it was: see begin.
	before map[string]string
}

// newSite makes an empty namespace, and removes it when the attempt ends.
func newSite(a *attempt, namespace, folder string) *site {
	a.Helper()
	s := &site{installation: requireCluster(a.T), t: a, namespace: namespace, folder: folder}
	if err := s.remove(a.Context()); err != nil {
		a.Fatal(err) // of an earlier run
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := s.api.Create(a.Context(), object); err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() {
		if err := s.remove(context.WithoutCancel(a.Context())); err != nil {
			a.Error(err)
		}
	})
	a.Cleanup(s.explain) // before anything is removed
	return s
}

// explain says of an attempt that failed how the cluster is by now.
func (s *site) explain() {
	if s.t.Failed() {
		s.t.Log(diagnosis.Explain(context.WithoutCancel(s.t.Context()), s.core))
	}
}

// remove takes the site away while Serin is still there to restore everything.
func (s *site) remove(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.api.Delete(ctx, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := wait.PollUntilContextTimeout(ctx, look, stateLimit, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(s.api.Get(ctx, client.ObjectKeyFromObject(namespace), &corev1.Namespace{})), nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s is not gone: %w", s.namespace, err)
	}
	return nil
}

// get reads an object of the site by its name.
func (s *site) get(name string, into client.Object) {
	s.t.Helper()
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, into); err != nil {
		s.t.Fatal(err)
	}
}

// apply applies a file of testdata into the namespace. Its ${VARIABLES} get values.
func (s *site) apply(file string, values ...string) {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("$ kubectl apply --namespace %s -f %s", s.namespace, file)
	text := strings.NewReplacer(append(values, "${NAMESPACE}", s.namespace)...).Replace(string(content))
	s.run(s.cluster.Kubectl, text, append(s.connection("--context"), "apply", "--namespace", s.namespace, "-f", "-")...)
}

// applyOwn applies files of the site's own folder.
func (s *site) applyOwn(files ...string) {
	s.t.Helper()
	for _, file := range files {
		s.apply(filepath.Join(s.folder, file))
	}
}

func (s *site) waitAvailable(deployments ...string) {
	s.t.Helper()
	for _, name := range deployments {
		s.kubectl("rollout", "status", "deployment/"+name, "--timeout", stateLimit.String())
	}
}

// kubectl runs the command in the site's namespace.
func (s *site) kubectl(args ...string) {
	s.t.Helper()
	s.t.Log("$ kubectl " + strings.Join(args, " "))
	s.run(s.cluster.Kubectl, "", append(s.connection("--context"), append([]string{"--namespace", s.namespace}, args...)...)...)
}

// helm runs the command in the site's namespace and returns what it prints.
func (s *site) helm(args ...string) string {
	s.t.Helper()
	return s.helmAt(s.t.Context(), s.namespace, args...)
}

func (s *site) helmAt(ctx context.Context, namespace string, args ...string) string {
	s.t.Helper()
	s.t.Log("$ helm " + strings.Join(args, " "))
	return s.runWith(ctx, s.cluster.Helm, "", append(s.connection("--kube-context"), append([]string{"--namespace", namespace}, args...)...)...)
}

// connection are the flags that name the cluster.
func (s *site) connection(contextFlag string) []string {
	return []string{"--kubeconfig", s.cluster.Kubeconfig, contextFlag, s.cluster.Context}
}

func (s *site) run(program, stdin string, args ...string) {
	s.t.Helper()
	s.runWith(s.t.Context(), program, stdin, args...)
}

func (s *site) runWith(ctx context.Context, program, stdin string, args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(ctx, program, args...)
	var output, said bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &output, &said
	if err := command.Run(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, &output, &said)
	}
	return output.String()
}

// poll looks until something is there, and ends the attempt when it does not come.
func (s *site) poll(what string, there func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) { return there(), nil })
	if err != nil {
		s.t.Fatalf("%s did not come: %v", what, err)
	}
}
