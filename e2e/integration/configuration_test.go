// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
)

func configMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": text}}
}

// readers is the Deployment of a website that reads the ConfigMap app in every way there is.
func readers(d *appsv1.Deployment) {
	ref := corev1.LocalObjectReference{Name: "app"}
	app := &d.Spec.Template.Spec.Containers[0]
	app.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "TEXT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "text"}}},
	}
	app.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}}
	first := *app.DeepCopy()
	first.Name, first.Ports = "first", nil
	d.Spec.Template.Spec.InitContainers = []corev1.Container{first}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "whole", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}}},
		{Name: "part", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}},
		}}}},
	}
}

// configured are the settings of a Rollout that makes contents part of a version.
func configured(ro *v1alpha1.Rollout, kinds ...v1alpha1.ConfigurationKind) {
	ro.Spec.Configuration = &v1alpha1.Configuration{Kinds: kinds}
}

// texts are the contents that the pods of the app read, and how many pods read
// each. A pod whose references differ, or lead nowhere, reads "?".
func (p *stage) texts() map[string]int {
	p.Helper()
	out := map[string]int{}
	list := &corev1.PodList{}
	if err := p.reader.List(p.Context(), list, client.InNamespace(p.namespace), client.MatchingLabels{"app": "website"}); err != nil {
		p.Fatal(err)
	}
	contents := p.contents()
	settings := &v1alpha1.Configuration{Kinds: []v1alpha1.ConfigurationKind{v1alpha1.ConfigurationConfigMap, v1alpha1.ConfigurationSecret}}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil || pod.Labels["serin.dev/proxy"] != "" {
			continue
		}
		refs := configrevision.References(&corev1.PodTemplateSpec{Spec: pod.Spec}, settings)
		refs = slices.DeleteFunc(refs, func(r configrevision.Reference) bool { return r.Name == "kube-root-ca.crt" })
		var read []string
		for _, ref := range refs {
			text, found := contents[ref]
			if !found {
				text = "?"
			}
			read = append(read, text)
		}
		out[strings.Join(read, "+")]++
	}
	return out
}

// text is the content of a ConfigMap or a Secret, "?" when there is none.
func (p *stage) text(ref configrevision.Reference) string {
	p.Helper()
	if text, found := p.contents()[ref]; found {
		return text
	}
	return "?"
}

// contents are those of all ConfigMaps and Secrets of the namespace.
func (p *stage) contents() map[configrevision.Reference]string {
	p.Helper()
	maps, secrets, out := &corev1.ConfigMapList{}, &corev1.SecretList{}, map[configrevision.Reference]string{}
	for _, list := range []client.ObjectList{maps, secrets} {
		if err := admin.List(p.Context(), list, client.InNamespace(p.namespace)); err != nil {
			p.Fatal(err)
		}
	}
	for _, c := range maps.Items {
		out[configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: c.Name}] = c.Data["text"]
	}
	for _, s := range secrets.Items {
		out[configrevision.Reference{Kind: v1alpha1.ConfigurationSecret, Name: s.Name}] = string(s.Data["text"])
	}
	return out
}

func (p *stage) read(want map[string]int) {
	p.Helper()
	p.eventually("the pods read the right contents", func(context.Context) bool { return maps.Equal(p.texts(), want) })
}

// setText changes the content of a ConfigMap.
func (p *stage) setText(text string) {
	p.Helper()
	c := configMap("app", text)
	c.Namespace = p.namespace
	if err := admin.Update(p.Context(), c); err != nil {
		p.Fatal(err)
	}
}

// through carries a release through both steps.
func (p *stage) through(ended int) {
	p.Helper()
	p.held(0)
	p.pass(time.Hour)
	p.held(1)
	p.pass(time.Hour)
	p.eventually("the release ended", func(context.Context) bool { return len(p.outcomes()) == ended })
	p.eventually("Ready", func(context.Context) bool { is, _, _ := ready(p.rollout()); return is })
}

func (p *stage) copies() (names []string) {
	p.Helper()
	list := &corev1.ConfigMapList{}
	if err := admin.List(p.Context(), list, client.InNamespace(p.namespace), client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleConfiguration}); err != nil {
		p.Fatal(err)
	}
	for _, c := range list.Items {
		names = append(names, c.Data["text"])
	}
	slices.Sort(names)
	return names
}

// ask makes contents part of versions from now on, which is a change of the template.
func (p *stage) ask(kinds ...v1alpha1.ConfigurationKind) {
	p.Helper()
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) { configured(ro, kinds...) })
	p.through(1)
}

func TestTheContentOfAConfigMapIsReleasedStepByStepAndComesBackWithItsVersion(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) {
		c.guarded = true
		readers(c.deployment)
		c.extras = append(c.extras, configMap("app", "one"))
	})
	p.ask(v1alpha1.ConfigurationConfigMap)
	p.read(map[string]int{"one": 4})

	p.setText("two")
	p.held(0)
	p.read(map[string]int{"one": 4, "two": 1})
	p.replaceOne("one")
	p.read(map[string]int{"one": 4, "two": 1})
	p.through(2)
	p.read(map[string]int{"two": 4})
	if got := p.copies(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("copies of %v", got)
	}
	if !p.hasEvent(t.Context(), v1alpha1.ReasonConfigurationChanged) {
		t.Error("nobody was told of the new content")
	}

	// The ConfigMap still says two, but the version that is undone to read one.
	p.mustKubectl("rollout", "undo", "deployment/website")
	p.through(3)
	p.read(map[string]int{"one": 4})
	p.setText("three")
	p.through(4)
	p.read(map[string]int{"three": 4})

	p.setImage(imageV2)
	p.through(5)
	p.read(map[string]int{"three": 4})
	p.checkPods(imageV2, 4)
}

// replaceOne deletes a pod that reads a text; its ReplicaSet makes another one.
func (p *stage) replaceOne(text string) {
	p.Helper()
	p.promise.keeps = 3
	list := &corev1.PodList{}
	if err := admin.List(p.Context(), list, client.InNamespace(p.namespace), client.MatchingLabels{"app": "website"}); err != nil {
		p.Fatal(err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		for _, v := range pod.Spec.Volumes {
			if v.ConfigMap == nil || p.text(configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: v.ConfigMap.Name}) != text {
				continue
			}
			if err := admin.Delete(p.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				p.Fatal(err)
			}
			p.eventually("the pod is gone", func(ctx context.Context) bool {
				return apierrors.IsNotFound(p.reader.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}))
			})
			return
		}
	}
	p.Fatalf("no pod reads %q", text)
}

func TestTheFirstVersionReadsItsOwnContentWithoutARelease(t *testing.T) {
	t.Parallel()
	p := &stage{scene: newScene(t), time: newMeasurements()}
	p.serveProxies()
	p.operator = p.startOperator(p.time)
	ro := newRollout()
	configured(ro, v1alpha1.ConfigurationConfigMap)
	p.create(ro)
	p.waitReason(v1alpha1.ReasonWorkloadNotFound)
	policy := &admissionv1.MutatingAdmissionPolicy{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: configurationPolicy}, policy); err != nil {
		t.Fatal(err)
	}
	p.eventually("the policy is relied on", func(context.Context) bool { return time.Since(policy.CreationTimestamp.Time) > 6*time.Second })
	d := deployment("website", 3)
	readers(d)
	// The first version is up only when its pods have been available for a while: until then, its
	// content becomes part of it, also where the operator gets to it late.
	d.Spec.MinReadySeconds = 15
	p.create(configMap("app", "one"), service("website"), d)
	p.waitReady()
	p.read(map[string]int{"one": 3})
	if got := p.outcomes(); len(got) > 0 {
		t.Errorf("history: %v", got)
	}
	p.setText("two")
	p.eventually("the canary reads its own content", func(context.Context) bool { return p.texts()["two"] > 0 && p.texts()["one"] > 0 })
}

func TestSecretsAndExceptionsAndCopiesThatNoVersionReads(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) {
		readers(c.deployment)
		c.sight = append(c.sight, func(see *sight) { see.secrets = see.namespaces })
		limit := int32(0)
		c.deployment.Spec.RevisionHistoryLimit = &limit
		c.deployment.Spec.Template.Spec.Volumes = append(c.deployment.Spec.Template.Spec.Volumes, corev1.Volume{
			Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}},
		}, corev1.Volume{
			Name: "live", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "switches"}}},
		})
		c.extras = append(c.extras, configMap("app", "one"), configMap("switches", "off"),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Type: "example.com/key", Data: map[string][]byte{"text": []byte("s1")}})
	})
	p.allowSecrets()
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		configured(ro, v1alpha1.ConfigurationConfigMap, v1alpha1.ConfigurationSecret)
		ro.Spec.Configuration.Except = []v1alpha1.ConfigurationReference{{Kind: v1alpha1.ConfigurationConfigMap, Name: "switches"}}
	})
	p.through(1) // asking for it is a change of the template
	p.read(map[string]int{"one+off+s1": 4})

	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), p.key("key"), secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["text"] = []byte("s2")
	if err := admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.through(2)
	p.read(map[string]int{"one+off+s2": 4})
	p.eventually("the copy that no version reads is gone", func(ctx context.Context) bool {
		list := &corev1.SecretList{}
		if err := admin.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleConfiguration}); err != nil {
			p.Fatal(err)
		}
		return len(list.Items) == 1 && string(list.Items[0].Data["text"]) == "s2" && list.Items[0].Type == "example.com/key"
	})

	switches := configMap("switches", "on")
	switches.Namespace = p.namespace
	if err := admin.Update(t.Context(), switches); err != nil {
		t.Fatal(err)
	}
	p.read(map[string]int{"one+on+s2": 4})

	// Without the setting, the pods of the next version read the originals.
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) { ro.Spec.Configuration = nil })
	p.through(3)
	p.setText("two")
	p.read(map[string]int{"two+on+s2": 4})
	if a := p.deployment().Spec.Template.Annotations; len(a) > 0 {
		t.Errorf("annotations of the template: %v", a)
	}
}

// allowSecrets gives the operator what the chart gives it in the namespaces of
// configuration.secretNamespaces.
func (p *stage) allowSecrets() {
	p.Helper()
	objects, err := renderChart(p.Context(), "--set", "configuration.secretNamespaces={"+p.namespace+"}")
	if err != nil {
		p.Fatal(err)
	}
	for _, o := range kinds(objects, "Role", "RoleBinding") {
		if o.GetNamespace() != p.namespace {
			continue
		}
		if err := admin.Create(p.Context(), o); err != nil {
			p.Fatal(err)
		}
	}
}

func TestWithoutAPolicyOrRightsNothingIsReleasedAndTheRolloutSaysWhy(t *testing.T) {
	t.Parallel()
	p := begin(t)
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		configured(ro, v1alpha1.ConfigurationConfigMap, v1alpha1.ConfigurationSecret)
	})
	p.waitReason(v1alpha1.ReasonConfigurationUnavailable)
	_, _, message := ready(p.rollout())
	want := `spec.configuration: the operator is not allowed to read Secrets in the namespace "` + p.namespace + `"; name it in the value configuration.secretNamespaces of its chart, or leave Secret out of kinds.`
	if diff := cmp.Diff(want, message); diff != "" {
		t.Error(diff)
	}
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) { configured(ro, v1alpha1.ConfigurationConfigMap) })
	p.eventually("Ready", func(context.Context) bool { is, _, _ := ready(p.rollout()); return is })
}
