// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

const (
	local  = v1alpha1.KindAnalysisTemplate
	global = v1alpha1.KindClusterAnalysisTemplate
)

func spec(name string) v1alpha1.AnalysisTemplateSpec {
	return v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{{MetricSettings: v1alpha1.MetricSettings{Name: name}}}}
}

func api(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "errors"}, Spec: spec("local")},
		&v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "foreign"}, Spec: spec("foreign")},
		&v1alpha1.ClusterAnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "errors"}, Spec: spec("global")},
	).Build()
}

func TestTheTemplatesThatAreNamedAreReadOnceEach(t *testing.T) {
	a := &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{
		{Name: "errors"}, {Name: "errors", Kind: local}, {Name: "errors", Kind: global}, {Name: "foreign"}, {Name: "foreign", Kind: global}, {Name: "nothing"},
	}}
	got, err := Read(t.Context(), api(t), "shop", a)
	want := []resolve.Template{{Kind: local, Name: "errors", Spec: spec("local")}, {Kind: global, Name: "errors", Spec: spec("global")}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := Read(t.Context(), api(t), "shop", nil); got != nil || err != nil {
		t.Errorf("without analysis: %v, %v", got, err)
	}
}

func TestATemplateThatCannotBeReadIsAnError(t *testing.T) {
	down := interceptor.NewClient(api(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	for _, kind := range []string{local, global} {
		if got, err := Read(t.Context(), down, "shop", &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "errors", Kind: kind}}}); err == nil {
			t.Errorf("%s: got %v", kind, got)
		}
	}
}

func TestTheNamesOfTemplatesTellBothKindsApart(t *testing.T) {
	ro := &v1alpha1.Rollout{}
	if got := Names(ro); len(got) > 0 {
		t.Errorf("of one without analysis: %v", got)
	}
	ro.Spec.Analysis = &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "errors"}, {Name: "errors", Kind: global}}}
	want := []string{Name(local, "errors"), Name(global, "errors")}
	if got := Names(ro); !slices.Equal(got, want) || want[0] == want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}
