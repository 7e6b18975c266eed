// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// perPod is what one pod can carry, in thousandths: of a processor, of a byte, or of the
// metric of an adapter.
const perPod = 1000

// podLoad is work that the pods of each app of a namespace share evenly. It is served as
// metrics-server and an adapter serve what they measure.
type podLoad struct {
	mu   sync.Mutex
	pods map[string]int64 // how many pods the work of an app needs, by namespace
}

// servePodLoad makes the API server serve the load of pods, from this process.
func servePodLoad(t *testing.T) *podLoad {
	t.Helper()
	l := &podLoad{pods: map[string]int64{}}
	// Nothing is listed as served: an operator that finds PodMetrics has proxies scaled by it.
	serveAPI(t, "metrics.k8s.io", "v1beta1", l)
	serveAPI(t, "custom.metrics.k8s.io", "v1beta2", l)
	return l
}

func (l *podLoad) set(namespace string, pods int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[namespace] = pods
}

// ServeHTTP answers the API server's aggregator.
func (l *podLoad) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// apis, GROUP, VERSION, namespaces, NAMESPACE, pods, and for the metric of an adapter * and its name
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var answer any
	switch {
	case len(path) == 3:
		answer = metav1.APIResourceList{GroupVersion: path[1] + "/" + path[2]}
	case len(path) >= 6 && path[5] == "pods":
		pods, each, err := l.share(r.Context(), path[4], r.URL.Query().Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if len(path) == 6 {
			answer = podMetrics(pods, each)
		} else {
			answer = adapterMetrics(pods, each, path[7])
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client that is gone needs no answer
}

// share is which pods a selector finds, and what each of them carries.
func (l *podLoad) share(ctx context.Context, namespace, selector string) (pods []corev1.Pod, each resource.Quantity, err error) {
	chosen, err := labels.Parse(selector)
	if err != nil {
		return nil, each, err
	}
	list := &corev1.PodList{}
	if err := admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: chosen}); err != nil {
		return nil, each, err
	}
	for i := range list.Items {
		if podutils.IsPodReady(&list.Items[i]) && list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, list.Items[i])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return pods, *resource.NewMilliQuantity(perPod*l.pods[namespace]/max(1, int64(len(pods))), resource.DecimalSI), nil
}

// podMetrics are of this moment: an autoscaler leaves pods out of an average over a time before they
// were ready.
func podMetrics(pods []corev1.Pod, each resource.Quantity) map[string]any {
	items := []any{}
	for i := range pods {
		items = append(items, map[string]any{
			"metadata":  metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name, Labels: pods[i].Labels},
			"timestamp": metav1.Now(), "window": "0s",
			"containers": []any{map[string]any{"name": pods[i].Spec.Containers[0].Name, "usage": map[string]any{"cpu": each, "memory": each}}},
		})
	}
	return map[string]any{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "items": items}
}

func adapterMetrics(pods []corev1.Pod, each resource.Quantity, name string) map[string]any {
	items := []any{}
	for i := range pods {
		items = append(items, map[string]any{
			"describedObject": corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pods[i].Namespace, Name: pods[i].Name},
			"metric":          map[string]any{"name": name}, "timestamp": metav1.Now(), "value": each,
		})
	}
	return map[string]any{"apiVersion": "custom.metrics.k8s.io/v1beta2", "kind": "MetricValueList", "items": items}
}

// TestAutoscalersOfWhatPodsCarryScaleARelease has them scale a Deployment that Serin has nothing
// to do with, and that has the same work, beside one that is released. Between releases both have
// the same size. During one, the pods of the canary carry a part of the work, and an autoscaler
// averages over all pods that the Deployment selects: it makes no more than it would without
// them, and as many as the work needs together with them.
func TestAutoscalersOfWhatPodsCarryScaleARelease(t *testing.T) {
	l := servePodLoad(t)
	one := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(perPod, resource.DecimalSI)}
	for name, metric := range map[string]autoscalingv2.MetricSpec{
		"resource": {Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: one}},
		"container resource": {Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: corev1.ResourceMemory, Container: "app", Target: one,
		}},
		"pods": {Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "requests-per-second"}, Target: one,
		}},
	} {
		scaler := func(name string) *autoscalingv2.HorizontalPodAutoscaler {
			a := scaledBy(name, metric)
			// What was measured before pods went is too little for those that stay: it makes fewer
			// than the work needs, for a moment.
			a.Spec.MinReplicas = new(int32(3))
			return a
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, func(c *cast) {
				c.extras = append(c.extras, deployment("control", 4), scaler("website"), scaler("control"))
				c.before = func(s *scene) { l.set(s.namespace, 4) }
			})
			p.promise.keeps = 3
			carry(p, l, 6)
			p.release()
			acted := p.moment()
			for _, pods := range []int{10, 3, 5} {
				carry(p, l, pods)
			}
			p.checkStayed(acted)
			p.pass(time.Hour)
			p.held(1)
			carry(p, l, 7)
			// It must not scale the Deployment in the moment of the handover.
			p.eventually("the autoscaler is done", func(ctx context.Context) bool {
				return *p.get(ctx, "website", &appsv1.Deployment{}).(*appsv1.Deployment).Spec.Replicas == 7
			})
			p.pass(time.Hour)
			p.waitReady()
			p.checkPods(imageV2, 7)
			carry(p, l, 4)
			p.checkPods(imageV2, 4)
			p.checkGivenBack()
			if outcomes := p.outcomes(); len(outcomes) != 1 || outcomes[0] != v1alpha1.OutcomePromoted {
				t.Errorf("outcomes %v", outcomes)
			}
		})
	}
}

// carry has the work of both Deployments need so many pods, and waits until they have them. An
// autoscaler leaves alone what is within a tenth of its target.
func carry(p *stage, l *podLoad, need int) {
	p.Helper()
	l.set(p.namespace, int64(need))
	p.eventually("another size of the control", func(ctx context.Context) bool {
		return int(*p.get(ctx, "control", &appsv1.Deployment{}).(*appsv1.Deployment).Spec.Replicas) == need
	})
	p.eventually("another size of the website", func(ctx context.Context) bool {
		size := int(*p.get(ctx, "website", &appsv1.Deployment{}).(*appsv1.Deployment).Spec.Replicas)
		pods := p.pods()
		all := len(pods[imageV1]) + len(pods[imageV2])
		return size <= need && 11*all >= 10*need && all >= size
	})
	p.whole()
}
