// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestServicesOfVersionsCarryWhatMonitorsGoBy(t *testing.T) {
	for name, test := range map[string]struct {
		labels, annotations         map[string]string
		wantLabels, wantAnnotations map[string]string
	}{
		"a Service without labels": {wantLabels: map[string]string{}},
		"labels of the app, and annotations of monitors": {
			labels:          map[string]string{"app": "website", "team": "shop", "app.kubernetes.io/name": "website"},
			annotations:     map[string]string{"prometheus.io/scrape": "true", "ad.datadoghq.com/service.checks": "{}", "example.com/note": "x"},
			wantLabels:      map[string]string{"app": "website", "team": "shop", "app.kubernetes.io/name": "website"},
			wantAnnotations: map[string]string{"prometheus.io/scrape": "true", "ad.datadoghq.com/service.checks": "{}"},
		},
		"what tools know their own objects by stays on those": {
			labels: map[string]string{
				"app": "website", "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "website-1", "kapp.k14s.io/app": "1",
				"kustomize.toolkit.fluxcd.io/name": "apps", "argocd.argoproj.io/instance": "website", "objectset.rio.cattle.io/hash": "x",
				"serin.dev/rollout": "other", "serin.dev/proxy": "website",
			},
			annotations: map[string]string{
				"argocd.argoproj.io/sync-wave": "1", "meta.helm.sh/release-name": "website", corev1.LastAppliedConfigAnnotation: "{}", "serin.dev/pin": "{}",
			},
			wantLabels: map[string]string{"app": "website"},
		},
		"the instance may be what Argo CD prunes by": {
			labels:     map[string]string{"app": "website", "app.kubernetes.io/instance": "website"},
			wantLabels: map[string]string{"app": "website"},
		},
		"the instance of a release of Helm": {
			labels:      map[string]string{"app.kubernetes.io/instance": "website"},
			annotations: map[string]string{"meta.helm.sh/release-name": "website"},
			wantLabels:  map[string]string{"app.kubernetes.io/instance": "website"},
		},
		"the instance where Argo CD goes by its annotation": {
			labels:      map[string]string{"app.kubernetes.io/instance": "website"},
			annotations: map[string]string{"argocd.argoproj.io/tracking-id": "website:/Service:shop/website"},
			wantLabels:  map[string]string{"app.kubernetes.io/instance": "website"},
		},
		"a label of the same name as the role": {
			labels: map[string]string{v1alpha1.LabelRole: "stable"}, wantLabels: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "website", Labels: test.labels, Annotations: test.annotations}}
			got := MakeBackend(root, map[string]string{"app": "website"}, v1alpha1.RoleCanary, "abc")
			test.wantLabels[v1alpha1.LabelRole] = v1alpha1.RoleCanary
			if diff := cmp.Diff(test.wantLabels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if len(test.wantAnnotations)+len(got.Annotations) > 0 && !cmp.Equal(test.wantAnnotations, got.Annotations) {
				t.Errorf("annotations (-want +got):\n%s", cmp.Diff(test.wantAnnotations, got.Annotations))
			}
			live := got.DeepCopy()
			if !BackendUpToDate(live, got) {
				t.Error("what was made is not up to date")
			}
			for key := range test.wantAnnotations {
				delete(live.Annotations, key)
				if BackendUpToDate(live, got) {
					t.Errorf("without %s it is up to date", key)
				}
				break
			}
		})
	}
}
