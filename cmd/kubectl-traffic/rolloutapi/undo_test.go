// SPDX-License-Identifier: Apache-2.0

package rolloutapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
)

// Controllers write a Deployment again and again in the moment after its template was changed, and another user may
// change the template once more.
func TestUndoGivesTheWholeTemplateWhateverIsWrittenMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		dry  string
		want string
	}{
		"undone":          {cli.DryNone, "v1"},
		"a dry run of it": {cli.DryServer, "v3"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := cli.NewScheme("v1alpha4")
			if err != nil {
				t.Fatal(err)
			}
			d, set := &appsv1.Deployment{}, &appsv1.ReplicaSet{}
			d.Namespace, d.Name, set.Namespace, set.Name = "shop", "website", "shop", "website-657bc99986"
			d.Spec.Template, set.Spec.Template = templateOf("v2"), templateOf("v1")
			set.Spec.Template.Labels = map[string]string{"app": "website", appsv1.DefaultDeploymentUniqueLabelKey: "657bc99986"}
			ro := &v1alpha1.Rollout{}
			ro.Namespace, ro.Name, ro.Spec.WorkloadRef.Name = "shop", "website", "website"
			ro.Status.Stable = &v1alpha1.VersionStatus{Revision: "657bc99986"}
			meanwhile := writtenMeanwhile(1, func(o client.Object) {
				template := &o.(*appsv1.Deployment).Spec.Template
				*template = templateOf("v3")
				template.Spec.NodeName = "node-1"
			})
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(d, set).WithInterceptorFuncs(meanwhile).Build()
			undone, err := rolloutapi.Writer{API: api, DryRun: test.dry}.Undo(t.Context(), ro, "")
			if err != nil || !undone.Changed {
				t.Fatalf("changed %t, error %v", undone.Changed, err)
			}
			kept := &appsv1.Deployment{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(d), kept); err != nil {
				t.Fatal(err)
			}
			want := templateOf(test.want)
			if test.dry != cli.DryNone {
				want.Spec.NodeName = "node-1"
			}
			if diff := cmp.Diff(want, kept.Spec.Template); diff != "" {
				t.Errorf("the template in the cluster (-want +got):\n%s", diff)
			}
		})
	}
}

// templateOf is the template of a version.
func templateOf(version string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "website"}
	template.Spec.Containers = []corev1.Container{{Name: "website", Image: "example.invalid/app:" + version}}
	return template
}
