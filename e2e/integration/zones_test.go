// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

// node registers a node for the time of a test. zone may be "".
func (s *scene) node(pool, zone string) {
	s.Helper()
	clientset, err := kubernetes.NewForConfig(plane.Config)
	if err != nil {
		s.Fatal(err)
	}
	name := pool + "-" + zone
	labels := map[string]string{fakenode.PoolLabel: pool}
	if zone != "" {
		labels[corev1.LabelTopologyZone] = zone
	} else {
		name = pool + "-nowhere"
	}
	if err := fakenode.Register(s.Context(), clientset, fakenode.MakeNode(name, labels)); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := admin.Delete(context.WithoutCancel(s.Context()), node); err != nil {
			s.Error(err)
		}
	})
}

// nodeZone is the zone of the node on which pods of proxies run.
const nodeZone = "zone-a"

// birdsIn is the app of birds, with the pods of each version in the zones that are
// named, one each, and Services that prefer endpoints in the zone of the client.
func birdsIn(t *testing.T, blue, green []string) *scene {
	t.Helper()
	s := newScene(t)
	zonal := func(name string, selector map[string]string) *corev1.Service {
		out := service(name)
		out.Spec.Selector, out.Spec.TrafficDistribution = selector, new(corev1.ServiceTrafficDistributionPreferSameZone)
		return out
	}
	for version, zones := range map[string][]string{"blue": blue, "green": green} {
		d := deployment("birds-"+version, int32(len(zones)))
		for _, labels := range []map[string]string{d.Spec.Selector.MatchLabels, d.Spec.Template.Labels} {
			labels["app"], labels["version"] = "birds", version
		}
		pool := s.namespace + "-" + version
		d.Spec.Template.Spec.NodeSelector = map[string]string{fakenode.PoolLabel: pool}
		for _, zone := range zones {
			s.node(pool, zone)
		}
		s.create(d, zonal("birds-"+version, map[string]string{"app": "birds", "version": version}))
	}
	s.create(zonal("birds", map[string]string{"app": "birds"}))
	s.eventually("the app is ready", func(ctx context.Context) bool { return len(s.readyEndpoints(ctx)) == len(blue)+len(green) })
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.create(&splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "birds"},
		Spec: splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{
			{Service: "birds-blue", Weight: 9}, {Service: "birds-green", Weight: 1},
		}},
	})
	s.inEffect(9, 1)
	return s
}

// says waits until a condition of the split has a status and a reason, and its message
// has all the parts.
func (s *scene) says(split, condition string, status metav1.ConditionStatus, reason string, parts ...string) {
	s.Helper()
	var last *metav1.Condition
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s of TrafficSplit %s was last %+v", condition, split, last)
		}
	})
	s.eventually(condition+"="+string(status)+" "+reason, func(ctx context.Context) bool {
		ts := &splitv1.TrafficSplit{}
		if err := admin.Get(ctx, s.key(split), ts); err != nil {
			return false
		}
		last = meta.FindStatusCondition(ts.Status.Conditions, condition)
		if last == nil || last.Status != status || last.Reason != reason || last.ObservedGeneration != ts.Generation {
			return false
		}
		for _, part := range parts {
			if !strings.Contains(last.Message, part) {
				return false
			}
		}
		return true
	})
}

func (s *scene) annotate(name, key, value string) {
	s.Helper()
	change(s, name, &corev1.Service{}, func(o *corev1.Service) {
		if value == "" {
			delete(o.Annotations, key)
			return
		}
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value)
	})
}

func TestTheStatusOfASplitFollowsTheHintsOfTheCluster(t *testing.T) {
	t.Parallel()
	const accepted, programmed = splitv1.ConditionTrafficDistributionAccepted, splitv1.ConditionTrafficDistributionProgrammed
	s := birdsIn(t, []string{"zone-a", "zone-b"}, []string{"zone-a", "zone-b"})
	s.says("birds", accepted, metav1.ConditionTrue, splitv1.ReasonAccepted)
	s.says("birds", programmed, metav1.ConditionTrue, splitv1.ReasonProgrammed)

	s.annotate("birds-green", corev1.AnnotationTopologyMode, "Auto")
	s.says("birds", accepted, metav1.ConditionFalse, splitv1.ReasonOverridden, `Service "birds-green"`, corev1.AnnotationTopologyMode)
	s.says("birds", programmed, metav1.ConditionFalse, splitv1.ReasonOverridden)
	s.annotate("birds-green", corev1.AnnotationTopologyMode, "")
	s.says("birds", accepted, metav1.ConditionTrue, splitv1.ReasonAccepted)
	s.says("birds", programmed, metav1.ConditionTrue, splitv1.ReasonProgrammed)

	s.node(s.namespace+"-green", "")
	change(s, "birds-green", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	s.says("birds", programmed, metav1.ConditionFalse, splitv1.ReasonHintsMissing, `Service "birds-green"`, "is in no zone that is known")
	s.says("birds", splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed)
}

func TestATrafficDistributionThatTheAPIServerRefusesIsSaidByTheRollout(t *testing.T) {
	t.Parallel()
	p := begin(t)
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		ro.Spec.TrafficDistribution = new(v1alpha1.TrafficDistribution("example.com/fast"))
	})
	p.waitReason(v1alpha1.ReasonInvalidSpec)
	_, _, message := ready(p.rollout())
	for _, part := range []string{"spec.trafficDistribution: this cluster refuses it", `"example.com/fast"`, `"PreferSameZone"`, "or remove it"} {
		if !strings.Contains(message, part) {
			t.Errorf("Ready says %q, without %q", message, part)
		}
	}
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) { ro.Spec.TrafficDistribution = nil })
	p.waitReady()
}

func TestTheSchemaRefusesATrafficDistributionThatCannotBeOne(t *testing.T) {
	t.Parallel()
	set := func(value string) string {
		return strings.Replace(smallest, "service: website\n", "service: website\n  trafficDistribution: "+value+"\n", 1)
	}
	for value, refused := range map[string]bool{
		"PreferClose": false, "PreferSameZone": false, "PreferSameNode": false, "example.com/fast": false,
		"prefersamezone": true, "Prefer Close": true, "example.com/": true, "/fast": true, "-example.com/fast": true, `""`: true,
		"example.com/a/b": true, strings.Repeat("a", 64) + "/" + strings.Repeat("b", 64): true,
	} {
		err := dryRun(t.Context(), set(value))
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "spec.trafficDistribution") {
			t.Errorf("%s: error %v", value, err)
		}
	}
	pair := strings.Replace(set("PreferClose"), "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: website}", "services: {stable: a, canary: b}", 1)
	if err := dryRun(t.Context(), pair); err == nil || !strings.Contains(err.Error(), "set it on those instead") {
		t.Errorf("beside spec.services: error %v", err)
	}
}
