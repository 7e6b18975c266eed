// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func template(image string, labels map[string]string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

func TestTemplatesAreComparedByMeaningAndWithoutTheirHash(t *testing.T) {
	plain := template("app:v1", map[string]string{"app": "website"})
	hashed := template("app:v1", map[string]string{"app": "website", "pod-template-hash": "abc"})
	empty := template("app:v1", map[string]string{"app": "website"})
	empty.Spec.NodeSelector = map[string]string{}
	for name, c := range map[string]struct {
		a, b *corev1.PodTemplateSpec
		want bool
	}{
		"themselves":                   {plain, plain, true},
		"with the label of a revision": {plain, hashed, true},
		"an empty map for none at all": {plain, empty, true},
		"another image":                {plain, template("app:v2", plain.Labels), false},
		"another label":                {plain, template("app:v1", map[string]string{"app": "shop"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameTemplate(c.a, c.b); got != c.want {
				t.Errorf("SameTemplate = %v", got)
			}
			if got := SameTemplate(c.b, c.a); got != c.want {
				t.Errorf("the other way round = %v", got)
			}
		})
	}
	if hashed.Labels["pod-template-hash"] != "abc" {
		t.Error("the comparison changed its input")
	}
}

func TestARevisionIsALabelAndDependsOnTheTemplateAndTheSaltOnly(t *testing.T) {
	a, errA := Revision("uid", template("app:v1", map[string]string{"app": "website"}))
	b, errB := Revision("uid", template("app:v1", map[string]string{"app": "website", "pod-template-hash": "abc"}))
	c, errC := Revision("uid", template("app:v2", map[string]string{"app": "website"}))
	d, errD := Revision("other", template("app:v1", map[string]string{"app": "website"}))
	if errA != nil || errB != nil || errC != nil || errD != nil {
		t.Fatal(errA, errB, errC, errD)
	}
	if a != b || a == c || a == d || a == "" || len(a) > 63 {
		t.Errorf("revisions %q %q %q %q", a, b, c, d)
	}
}

func TestTheCanaryIsWhatTheDeploymentControllerWouldMakeOfTheTemplate(t *testing.T) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(8)), MinReadySeconds: 3,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "website"}},
			Template: *template("app:v2", map[string]string{"app": "website", "tier": "web"}),
		},
	}
	controller := CanaryController(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "website", UID: "s"}})
	rs := MakeCanary(d, controller, "abc", 2)
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "website-abc", Namespace: "shop",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "website", UID: "s", Controller: new(true)}},
			Labels:          map[string]string{"app": "website", "tier": "web", "pod-template-hash": "abc"},
			Annotations:     map[string]string{AnnotationDesiredReplicas: "8"},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(2)), MinReadySeconds: 3,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "website", "pod-template-hash": "abc"}},
			Template: *template("app:v2", map[string]string{"app": "website", "tier": "web", "pod-template-hash": "abc"}),
		},
	}
	if diff := cmp.Diff(want, rs); diff != "" {
		t.Error(diff)
	}
	if len(d.Spec.Template.Labels) != 2 || DesiredReplicas(rs) != 8 || DesiredReplicas(&appsv1.ReplicaSet{}) != -1 {
		t.Error("the Deployment was changed, or its scale was not told")
	}
}

func TestABackendHasTheRootsPortsAndTrafficSettingsForOneRevision(t *testing.T) {
	root := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "website", "serin.dev/proxy": "website"},
			TrafficDistribution: new("PreferSameZone"),
			Ports:               []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), NodePort: 30080, AppProtocol: new("http")}},
		},
	}
	s := MakeBackend(root, map[string]string{"app": "website"}, v1alpha1.RoleCanary, "abc")
	if s.Name != "website-canary" || s.Spec.Type != corev1.ServiceTypeClusterIP || s.Spec.Ports[0].NodePort != 0 || *s.Spec.TrafficDistribution != "PreferSameZone" {
		t.Errorf("backend %+v", s)
	}
	if diff := cmp.Diff(map[string]string{"app": "website", "pod-template-hash": "abc"}, s.Spec.Selector); diff != "" {
		t.Error(diff)
	}
	if root.Spec.Ports[0].NodePort != 30080 {
		t.Error("the root Service was changed")
	}
	live := s.DeepCopy()
	live.Spec.ClusterIP = "10.96.0.9"
	if !BackendUpToDate(live, s) {
		t.Error("what the API server adds is drift")
	}
	for name, drift := range map[string]func(*corev1.Service){
		"selector":     func(s *corev1.Service) { s.Spec.Selector["app"] = "shop" },
		"port":         func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 },
		"distribution": func(s *corev1.Service) { s.Spec.TrafficDistribution = nil },
		"label":        func(s *corev1.Service) { delete(s.Labels, v1alpha1.LabelRole) },
		"role":         func(s *corev1.Service) { s.Labels[v1alpha1.LabelRole] = v1alpha1.RoleStable },
	} {
		changed := live.DeepCopy()
		drift(changed)
		if BackendUpToDate(changed, s) {
			t.Errorf("drift of the %s is not seen", name)
		}
	}
}

func TestTheDistributionOfTheRolloutGoesBeforeThatOfTheRootService(t *testing.T) {
	node, zone := v1alpha1.TrafficDistribution("PreferSameNode"), "PreferSameZone"
	for name, c := range map[string]struct {
		rollout *v1alpha1.TrafficDistribution
		root    *string
		want    *string
	}{
		"no label and no annotation": {},
		"the root Service's is kept": {root: &zone, want: &zone},
		"the Rollout's is set":       {rollout: &node, want: new("PreferSameNode")},
		"both say something":         {rollout: &node, root: &zone, want: new("PreferSameNode")},
	} {
		ro, root := &v1alpha1.Rollout{}, &corev1.Service{}
		ro.Spec.TrafficDistribution, root.Spec.TrafficDistribution = c.rollout, c.root
		if diff := cmp.Diff(c.want, Distribution(ro, root)); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
}

func TestOnlyWhatWasMadeForTheVeryRolloutIsItsOwn(t *testing.T) {
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", UID: "one"}}
	again := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", UID: "two"}}
	s := &corev1.Service{}
	if IsMarked(s, ro) {
		t.Error("another owner's object is taken for the Rollout's")
	}
	Mark(s, ro)
	if !IsMarked(s, ro) || IsMarked(s, again) {
		t.Errorf("marks %v %v", s.Labels, s.Annotations)
	}
	if s.Labels[v1alpha1.LabelRollout] = "shop"; IsMarked(s, ro) {
		t.Error("what has another name on it is taken for the Rollout's")
	}
}

// One in a hundred hashes would be a number in YAML, as users write it
// in spec.control.
func TestARevisionIsNeverANumber(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	seen := map[string]bool{}
	for i := range 2000 {
		name, err := Revision(strconv.Itoa(i), template)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strconv.ParseFloat(name, 64); err == nil {
			t.Errorf("%d: %s", i, name)
		}
		seen[name] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d names of 2000 templates", len(seen))
	}
}
