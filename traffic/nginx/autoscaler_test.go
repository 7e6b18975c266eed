// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

var proxyKey = client.ObjectKey{Namespace: "shop", Name: "serin-proxy-web"}

// scale sets the number of proxies as an autoscaler or kubectl does, and returns it
// as it is after the router has put right what it finds to be wrong.
func scale(t *testing.T, r *Router, c client.Client, replicas int32) int32 {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, c.Get(t.Context(), proxyKey, d))
	d.Spec.Replicas = &replicas
	must(t, c.Update(t.Context(), d, client.FieldOwner("kube-controller-manager")))
	if o := conditions(t, r, shopTarget())["Deployment"]; o.Condition == traffic.ObjectOutdated {
		must(t, r.Apply(t.Context(), shopTarget(), o))
	}
	must(t, c.Get(t.Context(), proxyKey, d))
	return *d.Spec.Replicas
}

func TestWhoeverScalesTheProxiesIsNotOverruled(t *testing.T) {
	r, api := made(t, shopTarget())
	for _, n := range []int32{5, 1, 3} {
		if got := scale(t, r, api, n); got != n {
			t.Errorf("scaled to %d, there are %d", n, got)
		}
	}
	// What is put right otherwise leaves the number as it is.
	r.options.Image = "serin:next"
	o := conditions(t, r, shopTarget())["Deployment"]
	if o.Condition != traffic.ObjectOutdated {
		t.Fatalf("with another image it is %s", o.Condition)
	}
	must(t, r.Apply(t.Context(), shopTarget(), o))
	d := &appsv1.Deployment{}
	must(t, api.Get(t.Context(), proxyKey, d))
	if *d.Spec.Replicas != 3 || d.Spec.Template.Spec.Containers[0].Image != "serin:next" {
		t.Errorf("%d replicas of %s", *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image)
	}
	if got := scale(t, r, api, 0); got != 2 {
		t.Errorf("scaled to 0, there are %d; without proxies there are no weights", got)
	}
}

func TestProxiesThatTakeOverAreNoMoreThanThereAreWithoutLoad(t *testing.T) {
	r, api := made(t, shopTarget())
	for _, test := range []struct {
		scaled int32
		want   int
	}{{2, 2}, {9, 2}, {1, 1}} {
		scale(t, r, api, test.scaled)
		state, err := r.Observe(t.Context(), shopTarget())
		must(t, err)
		if state.WantedProxies != test.want {
			t.Errorf("scaled to %d, %d are wanted, not %d", test.scaled, state.WantedProxies, test.want)
		}
	}
}

func TestTheAutoscalerComesAndGoesWithItsOption(t *testing.T) {
	r, api := made(t, shopTarget())
	if o, found := conditions(t, r, shopTarget())["HorizontalPodAutoscaler"]; found {
		t.Fatalf("without the option there is %+v", o)
	}
	r.options.Autoscaling, r.options.MaxReplicas = &Autoscaling{CPUUtilization: 80}, 4
	o := conditions(t, r, shopTarget())["HorizontalPodAutoscaler"]
	if o.Condition != traffic.ObjectAbsent || o.Unwanted {
		t.Fatalf("with the option it is %+v", o)
	}
	must(t, r.Apply(t.Context(), shopTarget(), o))
	if o := conditions(t, r, shopTarget())["HorizontalPodAutoscaler"]; o.Condition != traffic.ObjectCurrent {
		t.Fatalf("made, it is %s", o.Condition)
	}
	r.options.MaxReplicas = 6
	if o := conditions(t, r, shopTarget())["HorizontalPodAutoscaler"]; o.Condition != traffic.ObjectOutdated {
		t.Errorf("with another option it is %s", o.Condition)
	}
	r.options.Autoscaling = nil
	if o := conditions(t, r, shopTarget())["HorizontalPodAutoscaler"]; o.Condition != traffic.ObjectCurrent || !o.Unwanted {
		t.Errorf("without the option it is %+v", o)
	}
	must(t, api.Delete(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "serin-proxy-web"}}))
	if err := api.Get(t.Context(), proxyKey, &autoscalingv2.HorizontalPodAutoscaler{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestOptionsOfTheAutoscaler(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"the target has a default":          {Options{MaxReplicas: 2, Autoscaling: &Autoscaling{}}, ""},
		"a maximum below what is there":     {Options{Replicas: 3, MaxReplicas: 2}, "below the 3 replicas"},
		"a target below nothing":            {Options{Autoscaling: &Autoscaling{CPUUtilization: -1}}, "above 0"},
		"a utilization without its measure": {Options{Autoscaling: &Autoscaling{}, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}, "request of CPU"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Image, test.options.Reports = "serin:test", said{}
			err := test.options.complete()
			if test.want == "" && (err != nil || test.options.Autoscaling.CPUUtilization != 80) {
				t.Errorf("%v, %+v", err, test.options.Autoscaling)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
