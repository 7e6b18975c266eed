// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	loadGroup   = "external.metrics.k8s.io"
	loadVersion = "v1beta1"
)

// load is the metric that autoscalers read: how many pods each namespace needs. It
// is served as an adapter such as KEDA's serves it.
type load struct {
	mu   sync.Mutex
	pods map[string]int64
}

func (l *load) set(namespace string, pods int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[namespace] = pods
}

// ServeHTTP answers the API server's aggregator.
func (l *load) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, found := strings.CutPrefix(r.URL.Path, "/apis/"+loadGroup+"/"+loadVersion)
	path := strings.Split(strings.Trim(rest, "/"), "/")
	var answer any
	switch {
	case found && rest == "":
		answer = metav1.APIResourceList{GroupVersion: loadGroup + "/" + loadVersion}
	case found && len(path) == 3 && path[0] == "namespaces":
		l.mu.Lock()
		value, known := l.pods[path[1]]
		l.mu.Unlock()
		if !known {
			http.NotFound(w, r)
			return
		}
		answer = map[string]any{
			"apiVersion": loadGroup + "/" + loadVersion, "kind": "ExternalMetricValueList",
			"items": []any{map[string]any{
				"metricName": path[2], "metricLabels": map[string]any{},
				"timestamp": metav1.Now(), "value": resource.NewQuantity(value, resource.DecimalSI),
			}},
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client that is gone needs no answer
}

// serveLoad makes the API server serve the metric, from this process.
func serveLoad(t *testing.T) *load {
	t.Helper()
	l := &load{pods: map[string]int64{}}
	serveAPI(t, loadGroup, loadVersion, l)
	return l
}

// serveAPI makes the API server pass the requests for a group on to this process.
func serveAPI(t *testing.T, group, version string, handler http.Handler) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ownAddress(t).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	address := listener.Addr().(*net.TCPAddr)
	port, name := int64(address.Port), strings.ReplaceAll(group, ".", "-")
	local := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: operatorSpace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: int32(port)}}},
	}
	createForTest(t, (&replica{address: address}).endpoints(name))
	createForTest(t, local)
	createForTest(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": operatorSpace, "name": name, "port": port},
		},
	}})
}

// autoscaled lets the real HorizontalPodAutoscaler scale the website by the load.
func autoscaled(c *cast) {
	c.extras = append(c.extras, scaledBy("website", autoscalingv2.MetricSpec{
		Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "pods-needed"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1"))},
		},
	}))
}

// scaledBy is an autoscaler of a Deployment by one metric.
func scaledBy(name string, metric autoscalingv2.MetricSpec) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    new(int32(1)), MaxReplicas: 10, Metrics: []autoscalingv2.MetricSpec{metric},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))}},
		},
	}
}

// scaled waits until both versions have this many pods.
func (p *stage) scaled(stable, canary int) {
	p.Helper()
	p.eventually(strconv.Itoa(stable)+" pods of stable and "+strconv.Itoa(canary)+" of the canary", func(context.Context) bool {
		pods := p.pods()
		return len(pods[imageV1]) == stable && len(pods[imageV2]) == canary
	})
	if canary > 0 {
		p.whole()
	}
}

func TestTheHorizontalPodAutoscalerScalesBeforeDuringAndAfterARelease(t *testing.T) {
	t.Parallel()
	l := serveLoad(t)
	p := begin(t, autoscaled, func(c *cast) { *c.deployment.Spec.Replicas = 3 })
	p.promise.keeps = 3
	l.set(p.namespace, 6)
	p.scaled(6, 0)
	p.release()
	p.scaled(6, 2)
	acted := p.moment()
	l.set(p.namespace, 10)
	p.scaled(10, 2)
	l.set(p.namespace, 3)
	p.scaled(3, 1)
	l.set(p.namespace, 5)
	p.scaled(5, 1)
	p.checkStayed(acted)
	p.pass(time.Hour)
	p.held(1)
	l.set(p.namespace, 7)
	p.scaled(7, 5)
	p.pass(time.Hour)
	p.await(p.scene, "promoting", saysReason(v1alpha1.ReasonPromoting))
	l.set(p.namespace, 8)
	p.waitReady()
	p.checkPods(imageV2, 8)
	l.set(p.namespace, 4)
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
	p.waitReady()
}

// Whoever scales, kubectl, an autoscaler or KEDA, does it by this write.
func TestScalingToOneInTheMiddleOfACanaryIsFollowedAndChangesNoWeight(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.promise.keeps = 1
	p.release()
	acted := p.moment()
	p.mustKubectl("scale", "deployment/website", "--replicas=1")
	p.scaled(1, 1)
	p.held(0)
	p.checkStayed(acted)
	p.finish(1)
}

// KEDA takes the last pod away when there is nothing to do, and brings one back.
func TestScalingToZeroAndBackInTheMiddleOfACanaryCondemnsNobody(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.promise.keeps = 0 // whoever scales to zero wants no pods
	p.scale(0)
	p.scaled(0, 0)
	p.scale(4)
	p.eventually("stable is back", func(context.Context) bool { return len(p.pods()[imageV1]) == 4 })
	p.finish(4)
	if outcomes := p.outcomes(); len(outcomes) != 1 || outcomes[0] != v1alpha1.OutcomePromoted {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestAReleaseOfADeploymentThatIsScaledToZeroNeedsNoStepsAndItsPodsAreTheNewVersions(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.promise.keeps = 0
	p.scale(0)
	p.scaled(0, 0)
	p.setImage(imageV2)
	p.waitReady()
	p.scale(3)
	p.checkPods(imageV2, 3)
	p.checkGivenBack()
}
