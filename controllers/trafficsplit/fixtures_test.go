// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

func makeService(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: "uid-" + "service"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.10", Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func makePod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
	}
}

func makeSplit(stable, canary int32) *splitv1.TrafficSplit {
	return &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, UID: "uid-split", Generation: 1},
		Spec: splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{
			{Service: "web-stable", Weight: stable}, {Service: "web-canary", Weight: canary},
		}},
	}
}

// makeGroup is a group of the requests with a header.
func makeGroup(name, regex string) *specsv1.HTTPRouteGroup {
	return &specsv1.HTTPRouteGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: specsv1.HTTPRouteGroupSpec{Matches: []specsv1.HTTPMatch{{
			Name: "testers", Headers: specsv1.Headers{Items: []specsv1.Header{{Name: "x-beta", Regex: regex}}},
		}}},
	}
}

// shop is an app with two versions, their Services, and the root Service.
func shop() []client.Object {
	app := func(version string) map[string]string { return map[string]string{"app": "web", "version": version} }
	return []client.Object{
		makeService("web", map[string]string{"app": "web"}),
		makeService("web-stable", app("1")),
		makeService("web-canary", app("2")),
		makePod("app-1", app("1")), makePod("app-2", app("2")),
	}
}
