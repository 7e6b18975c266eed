// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// deploy makes the pods of every Deployment and takes those of the deleted ones.
func (w *world) deploy() {
	w.t.Helper()
	var deployments appsv1.DeploymentList
	w.must(w.api.List(w.ctx(), &deployments))
	wanted := map[string]bool{}
	for _, d := range deployments.Items {
		for i := range *d.Spec.Replicas {
			name := fmt.Sprintf("%s-%d", d.Name, i)
			wanted[name] = true
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: d.Namespace, UID: types.UID(name), Labels: d.Spec.Template.Labels, Finalizers: []string{"test/running"},
			}, Spec: corev1.PodSpec{NodeName: "node", Containers: d.Spec.Template.Spec.Containers}}
			if err := w.api.Create(w.ctx(), pod); !apierrors.IsAlreadyExists(err) {
				w.must(err)
				if w.restricted && !w.closed {
					w.t.Errorf("%s starts before the policy that closes its port of counters", name)
				}
				delete(w.said, pod.UID) // another pod of that name has said nothing yet
			}
		}
	}
	for _, pod := range w.pods() {
		if strings.HasPrefix(pod.Name, "serin-proxy-") && !wanted[pod.Name] && pod.DeletionTimestamp.IsZero() {
			w.must(w.api.Delete(w.ctx(), &pod))
		}
	}
}

// stopped ends the pods that are being deleted.
func (w *world) stopped() {
	w.t.Helper()
	for _, pod := range w.pods() {
		if !pod.DeletionTimestamp.IsZero() {
			pod.Finalizers = nil
			w.must(w.api.Update(w.ctx(), &pod))
		}
	}
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.api.List(w.ctx(), &pods))
	return pods.Items
}

func (w *world) proxies() []corev1.Pod {
	w.t.Helper()
	return slices.DeleteFunc(w.pods(), func(p corev1.Pod) bool { return p.Labels[traffic.LabelProxy] == "" })
}

// ready makes proxies ready.
func (w *world) ready(names ...string) {
	w.t.Helper()
	for _, pod := range w.proxies() {
		if len(names) == 0 || slices.Contains(names, pod.Name) {
			w.makeReady(&pod)
		}
	}
}

func (w *world) makeReady(pod *corev1.Pod) {
	w.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.PodIP = "10.0.0.1"
	if n, found := strings.CutPrefix(pod.Name, "serin-proxy-web-"); found {
		pod.Status.PodIP = "10.0.1." + n
	}
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	w.must(w.api.Status().Update(w.ctx(), pod))
}

// create makes objects; pods are ready at once.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.must(w.api.Create(w.ctx(), o))
		if pod, ok := o.(*corev1.Pod); ok {
			w.makeReady(pod)
		}
	}
}

// confirm makes proxies report the generation of the split.
func (w *world) confirm(names ...string) {
	w.t.Helper()
	split := w.split()
	for _, pod := range w.proxies() {
		if len(names) == 0 || slices.Contains(names, pod.Name) {
			w.serve(pod.Name, split.Generation, w.digest(split))
		}
	}
}

// digest is what a proxy that sees the world as it is serves.
func (w *world) digest(split *splitv1.TrafficSplit) string {
	w.t.Helper()
	known := resolve.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}}
	var services corev1.ServiceList
	w.must(w.api.List(w.ctx(), &services))
	for i := range services.Items {
		known.Services[services.Items[i].Name] = &services.Items[i]
	}
	var groups specsv1.HTTPRouteGroupList
	w.must(w.api.List(w.ctx(), &groups))
	for i := range groups.Items {
		known.Groups[groups.Items[i].Name] = &groups.Items[i]
	}
	resolved, _ := resolve.Split(split, known)
	return resolved.Digest()
}

// report makes one proxy say why it can't follow.
func (w *world) report(proxy string, generation int64, message string) {
	w.said[types.UID(proxy)] = traffic.Reading{Done: true, Serves: traffic.Want{Generation: generation}, Message: message}
}

// serve makes one proxy say what it serves.
func (w *world) serve(proxy string, generation int64, configuration string) {
	w.said[types.UID(proxy)] = traffic.Reading{Done: true, Serves: traffic.Want{Generation: generation, Configuration: configuration}}
}

// endpoints brings the EndpointSlices up to date.
func (w *world) endpoints() {
	w.t.Helper()
	var services corev1.ServiceList
	w.must(w.api.List(w.ctx(), &services))
	for _, s := range services.Items {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-1", Namespace: s.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		}, AddressType: discoveryv1.AddressTypeIPv4}
		for _, port := range s.Spec.Ports {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Protocol: &port.Protocol, Port: &port.Port})
		}
		for _, name := range w.selected(&s) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name},
			})
		}
		live := &discoveryv1.EndpointSlice{}
		if err := w.api.Get(w.ctx(), client.ObjectKeyFromObject(slice), live); apierrors.IsNotFound(err) {
			w.must(w.api.Create(w.ctx(), slice))
			continue
		}
		slice.ResourceVersion = live.ResourceVersion
		w.must(w.api.Update(w.ctx(), slice))
	}
	w.follow()
}

// follow has a replica that does not lead bring the EndpointSlices of proxies up to date.
func (w *world) follow() {
	w.t.Helper()
	r := &endpoints.Reconciler{Client: w.api, Live: w.api, FieldOwner: traffic.FieldManager}
	_, err := r.Reconcile(w.ctx(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "web"}})
	w.must(err)
}

// serving are the ready pods that a Service selects at this moment, and the proxies that
// are its endpoints.
func (w *world) serving(s *corev1.Service) []string {
	w.t.Helper()
	names := w.selected(s)
	var list discoveryv1.EndpointSliceList
	w.must(w.api.List(w.ctx(), &list, client.MatchingLabels{discoveryv1.LabelManagedBy: endpoints.ManagedBy, discoveryv1.LabelServiceName: s.Name}))
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if *e.Conditions.Ready {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	return names
}

// selected are the ready pods that a Service selects at this moment.
func (w *world) selected(s *corev1.Service) []string {
	w.t.Helper()
	var names []string
	for _, pod := range w.pods() {
		if podReady(&pod) && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			names = append(names, pod.Name)
		}
	}
	return names
}
