// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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

func TestTheSharedProvidersAreReadWithTheLabelsOfTheNamespace(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	spec := v1alpha1.ClusterMetricProviderSpec{Type: v1alpha1.ProviderPrometheus, Address: "http://p"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
		&v1alpha1.ClusterMetricProvider{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec},
		&v1alpha1.ClusterMetricProvider{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: spec},
		&v1alpha1.ClusterMetricProvider{ObjectMeta: metav1.ObjectMeta{Name: "not-named"}, Spec: spec},
	).Build()
	named := func(name string) v1alpha1.BasicProviders {
		return v1alpha1.BasicProviders{ProviderRef: &v1alpha1.MetricProviderReference{Name: name}}
	}
	a := &v1alpha1.Analysis{Metrics: []v1alpha1.InlineMetric{{Provider: v1alpha1.InlineProvider{BasicProviders: named("a")}}, {}}}
	templates := []resolve.Template{{Spec: v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{
		{Provider: v1alpha1.MetricProvider{BasicProviders: named("b")}}, {Provider: v1alpha1.MetricProvider{BasicProviders: named("missing")}},
	}}}}
	got, err := Shared(t.Context(), api, "shop", a, templates)
	want := resolve.Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"a": spec, "b": spec}, Namespace: map[string]string{"team": "shop"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := Shared(t.Context(), api, "gone", a, nil); err != nil || got.Namespace != nil || len(got.Providers) != 1 {
		t.Errorf("in a namespace that is gone: %+v, %v", got, err)
	}
	down := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	if _, err := Shared(t.Context(), down, "shop", a, nil); err == nil {
		t.Error("what can't be read is no error")
	}
	if got, err := Shared(t.Context(), down, "shop", nil, nil); err != nil || got.Providers != nil {
		t.Errorf("nothing is named, and read: %+v, %v", got, err)
	}
}
