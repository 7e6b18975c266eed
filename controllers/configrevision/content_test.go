// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestReferencesAreFoundWhereverPodsReadThem(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	container := func(n string) corev1.Container {
		return corev1.Container{
			EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("from" + n)}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("from" + n)}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{Optional: new(true)}},
			},
			Env: []corev1.EnvVar{
				{Name: "A", Value: "plain"},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("key" + n)}}},
				{Name: "D", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("key" + n)}}},
			},
		}
	}
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{local("registry")},
		InitContainers:   []corev1.Container{container("1")},
		Containers:       []corev1.Container{container("2"), container("2")},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("volume")}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("projected")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("projected")}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
			}}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}}
	names := func(settings *v1alpha1.Configuration) string {
		var out []string
		for _, r := range References(template, settings) {
			out = append(out, string(r.Kind)[:1]+":"+r.Name)
		}
		return strings.Join(out, " ")
	}
	both := []v1alpha1.ConfigurationKind{v1alpha1.ConfigurationConfigMap, v1alpha1.ConfigurationSecret}
	for _, test := range []struct {
		name     string
		settings *v1alpha1.Configuration
		want     string
	}{
		{name: "no annotation", want: ""},
		{name: "ConfigMaps", settings: &v1alpha1.Configuration{Kinds: both[:1]}, want: "C:from1 C:from2 C:key1 C:key2 C:projected C:volume"},
		{name: "both kinds", settings: &v1alpha1.Configuration{Kinds: both}, want: "C:from1 C:from2 C:key1 C:key2 C:projected C:volume S:from1 S:from2 S:key1 S:key2 S:projected S:volume"},
		{
			name:     "exceptions are of one kind",
			settings: &v1alpha1.Configuration{Kinds: both, Except: []Reference{{Kind: v1alpha1.ConfigurationSecret, Name: "volume"}, {Kind: v1alpha1.ConfigurationConfigMap, Name: "from1"}}},
			want:     "C:from2 C:key1 C:key2 C:projected C:volume S:from1 S:from2 S:key1 S:key2 S:projected",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(test.settings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDigestsTellContentsApartAndNothingElse(t *testing.T) {
	base := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"c": {3}}}
	}
	same := base()
	same.Labels, same.ResourceVersion, same.Immutable = map[string]string{"x": "y"}, "7", new(bool)
	if DigestConfigMap(same) != DigestConfigMap(base()) {
		t.Error("metadata count as content")
	}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"a value":          func(c *corev1.ConfigMap) { c.Data["a"] = "2" },
		"a key":            func(c *corev1.ConfigMap) { delete(c.Data, "a") },
		"moved characters": func(c *corev1.ConfigMap) { c.Data = map[string]string{"a1": "", "b": "2"} },
		"a binary value":   func(c *corev1.ConfigMap) { c.BinaryData["c"] = []byte{4} },
		"binary for text":  func(c *corev1.ConfigMap) { delete(c.Data, "b"); c.BinaryData["b"] = []byte("2") },
	} {
		other := base()
		change(other)
		if DigestConfigMap(other) == DigestConfigMap(base()) {
			t.Errorf("%s makes no difference", name)
		}
	}
	one := &corev1.Secret{Type: "a", Data: map[string][]byte{"a": []byte("1")}}
	other := &corev1.Secret{Type: "b", Data: one.Data}
	if DigestSecret(one) == DigestSecret(other) {
		t.Error("the type of a Secret makes no difference")
	}
}

func TestACopyHasTheContentAndNothingOfWhoLooksAfterTheOriginal(t *testing.T) {
	owner := Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "website", UID: "d1"}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "app", Labels: map[string]string{"managed": "git"}, Annotations: map[string]string{"sync": "on"}}
	c := MakeConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {2}}}, "website", owner)
	s := MakeSecret(&corev1.Secret{ObjectMeta: meta, Type: "kind", Data: map[string][]byte{"a": {1}}}, "website", owner)
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: c.Name,
		Labels:          map[string]string{"serin.dev/rollout": "website", "serin.dev/role": "configuration"},
		Annotations:     map[string]string{"serin.dev/configuration": "app"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "website", UID: "d1"}},
	}
	if diff := cmp.Diff(&corev1.ConfigMap{ObjectMeta: want, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {2}}, Immutable: new(true)}, c); diff != "" {
		t.Error(diff)
	}
	want.Name = s.Name
	if diff := cmp.Diff(&corev1.Secret{ObjectMeta: want, Type: "kind", Data: map[string][]byte{"a": {1}}, Immutable: new(true)}, s); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(c.Name, "app-") || len(c.Name) != len("app-")+digits {
		t.Errorf("name %s", c.Name)
	}
}

func TestNamesOfCopiesDifferByWorkloadAndStayWithinBounds(t *testing.T) {
	if CopyName("app", "one", "x") == CopyName("app", "two", "x") {
		t.Error("two workloads share a copy, so that one could take it from the other")
	}
	// The name is on record in the status: it must never change.
	if got, want := CopyName("app", "one", "x"), "app-4f4f2da89e62"; got != want {
		t.Errorf("the name of a copy is %s, want %s", got, want)
	}
	if n := len(CopyName(strings.Repeat("a", 253), "one", "x")); n != 253 {
		t.Errorf("%d characters", n)
	}
}

func TestTokensOfServiceAccountsAreNotKept(t *testing.T) {
	if Keepable(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}) || !Keepable(&corev1.Secret{Type: corev1.SecretTypeTLS}) {
		t.Error("only the token of a service account can't be copied")
	}
}
