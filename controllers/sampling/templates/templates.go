// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// Read returns the templates that a Rollout of a namespace names, each once. One that
// does not exist is left out: resolve.Resolve says so, with the field. The reader
// should be a cache.
func Read(ctx context.Context, cached client.Reader, namespace string, a *v1alpha1.Analysis) ([]resolve.Template, error) {
	if a == nil {
		return nil, nil
	}
	var list []resolve.Template
	read := map[[2]string]bool{}
	for _, ref := range a.TemplateRefs {
		kind := kindOf(ref)
		at := [2]string{kind, ref.Name}
		if read[at] {
			continue
		}
		read[at] = true
		spec, err := readOne(ctx, cached, namespace, kind, ref.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, ref.Name, err)
		}
		list = append(list, resolve.Template{Kind: kind, Name: ref.Name, Spec: *spec})
	}
	return list, nil
}

func readOne(ctx context.Context, cached client.Reader, namespace, kind, name string) (*v1alpha1.AnalysisTemplateSpec, error) {
	if kind == v1alpha1.KindClusterAnalysisTemplate {
		t := &v1alpha1.ClusterAnalysisTemplate{}
		err := cached.Get(ctx, types.NamespacedName{Name: name}, t)
		return &t.Spec, err
	}
	t := &v1alpha1.AnalysisTemplate{}
	err := cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, t)
	return &t.Spec, err
}

// Shared returns the ClusterMetricProviders that the metrics of a Rollout and of its
// templates name, and the labels of its namespace, which say whether it may use them. One
// that does not exist is left out: resolve.Shared says so. The reader should be a cache.
func Shared(ctx context.Context, cached client.Reader, namespace string, a *v1alpha1.Analysis, templates []resolve.Template) (shared resolve.Shared, err error) {
	for _, name := range sharedNames(a, templates) {
		p := &v1alpha1.ClusterMetricProvider{}
		err := cached.Get(ctx, types.NamespacedName{Name: name}, p)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return shared, fmt.Errorf("read ClusterMetricProvider %s: %w", name, err)
		}
		if shared.Providers == nil {
			shared.Providers = map[string]v1alpha1.ClusterMetricProviderSpec{}
		}
		shared.Providers[name] = p.Spec
	}
	if len(shared.Providers) == 0 {
		return shared, nil
	}
	of := &corev1.Namespace{}
	if err := cached.Get(ctx, types.NamespacedName{Name: namespace}, of); client.IgnoreNotFound(err) != nil {
		return shared, fmt.Errorf("read the namespace: %w", err)
	}
	shared.Namespace = of.Labels
	return shared, nil
}

// sharedNames are the names of the providers, each once.
func sharedNames(a *v1alpha1.Analysis, templates []resolve.Template) (names []string) {
	add := func(ref *v1alpha1.MetricProviderReference) {
		if ref != nil && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	if a != nil {
		for _, m := range a.Metrics {
			add(m.Provider.ProviderRef)
		}
	}
	for _, t := range templates {
		for _, m := range t.Spec.Metrics {
			add(m.Provider.ProviderRef)
		}
	}
	return names
}

// Names are the templates that a Rollout names, as Name writes them.
func Names(ro *v1alpha1.Rollout) (names []string) {
	if ro.Spec.Analysis == nil {
		return nil
	}
	for _, ref := range ro.Spec.Analysis.TemplateRefs {
		names = append(names, Name(kindOf(ref), ref.Name))
	}
	return names
}

// Name tells templates of both kinds apart. Where a template without a namespace
// concerns every namespace is for the caller to know.
func Name(kind, name string) string { return kind + "/" + name }

// kindOf has the default for objects that the schema did not fill in.
func kindOf(ref v1alpha1.TemplateReference) string {
	if ref.Kind == "" {
		return v1alpha1.KindAnalysisTemplate
	}
	return ref.Kind
}
