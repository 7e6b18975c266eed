// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// operator is a manager's Deployment with a status.
func operator(status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "serin-system", Name: "serin-manager", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: status,
	}
}

func TestTheCheckFindsWhatIsMissing(t *testing.T) {
	serin := &metav1.APIResourceList{GroupVersion: "serin.dev/v1alpha1", APIResources: []metav1.APIResource{{Name: "rollouts"}}}
	splits := &metav1.APIResourceList{GroupVersion: "split.smi-spec.io/v1alpha4", APIResources: []metav1.APIResource{{Name: "trafficsplits", Kind: "TrafficSplit"}}}
	ready := appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, ReadyReplicas: 2}
	for name, test := range map[string]struct {
		serves     []*metav1.APIResourceList
		deployment *appsv1.Deployment
		want       string
	}{
		"nothing is missing":                 {serves: []*metav1.APIResourceList{serin, splits}, deployment: operator(ready)},
		"the API is not served":              {serves: []*metav1.APIResourceList{splits}, deployment: operator(ready), want: "does not serve serin.dev/v1alpha1"},
		"a pod is not ready":                 {serves: []*metav1.APIResourceList{serin, splits}, deployment: operator(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, ReadyReplicas: 1}), want: "1 of 2 pods ready"},
		"a pod is of the template before":    {serves: []*metav1.APIResourceList{serin, splits}, deployment: operator(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, ReadyReplicas: 2}), want: "serin-manager"},
		"the status is of the spec before":   {serves: []*metav1.APIResourceList{serin, splits}, deployment: operator(appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 2, ReadyReplicas: 2}), want: "serin-manager"},
		"the Deployment is in another place": {serves: []*metav1.APIResourceList{serin, splits}, deployment: &appsv1.Deployment{}, want: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewClientset(test.deployment)
			cluster.Resources = test.serves
			var out strings.Builder
			o := installOptions{namespace: "serin-system", deployments: []string{"serin-manager"}, timeout: time.Nanosecond}
			err := o.run(t.Context(), cluster, &out)
			if test.want == "" && (err != nil || !strings.Contains(out.String(), "serin-manager")) {
				t.Errorf("error %v, output %q", err, out.String())
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestTheCheckOfAPauseNeedsADeployment(t *testing.T) {
	cmd := NewInstallCommand()
	cmd.SetArgs([]string{"--hold"})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--hold: give --deployment") {
		t.Error(err)
	}
}

func TestTheCheckFindsADeploymentThatIsNotPaused(t *testing.T) {
	ready := appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, ReadyReplicas: 2}
	for name, test := range map[string]struct {
		paused bool
		err    error
		want   string
	}{
		"paused by the same write":    {paused: true},
		"not paused":                  {want: "does not pause it"},
		"refused, such as no manager": {err: errors.New("failed calling webhook"), want: "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewClientset(operator(ready))
			cluster.Resources = []*metav1.APIResourceList{
				{GroupVersion: "serin.dev/v1alpha1"}, {GroupVersion: "split.smi-spec.io/v1alpha4", APIResources: []metav1.APIResource{{Name: "trafficsplits", Kind: "TrafficSplit"}}},
			}
			cluster.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchActionImpl)
				if !slices.Equal(patch.PatchOptions.DryRun, []string{metav1.DryRunAll}) {
					t.Error("the check changes the Deployment")
				}
				d := operator(ready)
				d.Spec.Paused = test.paused
				return true, d, test.err
			})
			o := installOptions{namespace: "serin-system", deployments: []string{"serin-manager"}, hold: true, timeout: time.Nanosecond}
			err := o.run(t.Context(), cluster, io.Discard)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
