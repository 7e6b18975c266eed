// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTheValuesSayWhichImagesArePulledAndHow(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, test := range map[string]struct {
		image, proxy map[string]any
		manager      string
		secrets      []string
		flags        []string
	}{
		"nothing is said": {
			manager: "registry.example/serin-dev/serin:1.2.3 IfNotPresent",
			flags:   []string{"--proxy-image=registry.example/serin-dev/serin-proxy:1.2.3", "--proxy-pull-policy=IfNotPresent"},
		},
		"a mirror with a password": {
			image:   map[string]any{"registry": "mirror.example/a", "tag": "test", "pullPolicy": "Always", "pullSecrets": []any{"one"}},
			proxy:   map[string]any{"pullSecrets": []any{"two", "three"}},
			manager: "mirror.example/a/serin-dev/serin:test Always", secrets: []string{"one"},
			flags: []string{
				"--proxy-image=mirror.example/a/serin-dev/serin-proxy:test", "--proxy-pull-policy=Always",
				"--proxy-pull-secret=two", "--proxy-pull-secret=three",
			},
		},
		"digests, and another registry for the proxies": {
			image:   map[string]any{"digest": digest, "tag": "test"},
			proxy:   map[string]any{"registry": "edge.example", "repository": "nginx/proxy", "digest": digest, "pullPolicy": "Never"},
			manager: "registry.example/serin-dev/serin@" + digest + " IfNotPresent",
			flags:   []string{"--proxy-image=edge.example/nginx/proxy@" + digest, "--proxy-pull-policy=Never"},
		},
		"a tag for the proxies alone": {
			proxy:   map[string]any{"tag": "fixed"},
			manager: "registry.example/serin-dev/serin:1.2.3 IfNotPresent",
			flags:   []string{"--proxy-image=registry.example/serin-dev/serin-proxy:fixed", "--proxy-pull-policy=IfNotPresent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if test.image != nil {
				values["image"] = test.image
			}
			if test.proxy != nil {
				values["proxy"] = map[string]any{"image": test.proxy}
			}
			for _, d := range deployments(t, values) {
				c := d.Spec.Template.Spec.Containers[0]
				if got := c.Image + " " + string(c.ImagePullPolicy); got != test.manager {
					t.Errorf("%s pulls %s, want %s", d.Name, got, test.manager)
				}
				var secrets []string
				for _, s := range d.Spec.Template.Spec.ImagePullSecrets {
					secrets = append(secrets, s.Name)
				}
				if diff := cmp.Diff(test.secrets, secrets); diff != "" {
					t.Errorf("Secrets of %s (-want +got):\n%s", d.Name, diff)
				}
				if c.Name != "manager" {
					continue
				}
				flags := slices.DeleteFunc(c.Args, func(arg string) bool {
					return !strings.HasPrefix(arg, "--proxy-image") && !strings.HasPrefix(arg, "--proxy-pull")
				})
				if diff := cmp.Diff(test.flags, flags); diff != "" {
					t.Errorf("flags (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestImagesThatCantBeAreRefused(t *testing.T) {
	for name, image := range map[string]map[string]any{
		"a digest that is none":  {"digest": "sha256:1"},
		"a name in a registry":   {"repository": "Serin"},
		"an unknown pull policy": {"pullPolicy": "Sometimes"},
		"a tag with a slash":     {"tag": "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			chart := makeChart(t, newTestMaker(t))
			for _, values := range []map[string]any{{"image": image}, {"proxy": map[string]any{"image": image}}} {
				if _, err := bases[0].render(t.Context(), chart, values); err == nil || !strings.Contains(err.Error(), "image") {
					t.Errorf("%v: rendered with the result %v", values, err)
				}
			}
		})
	}
}

// deployments are those that the chart renders.
func deployments(t *testing.T, values map[string]any) []*appsv1.Deployment {
	t.Helper()
	rendered, err := bases[0].render(t.Context(), makeChart(t, newTestMaker(t)), values)
	if err != nil {
		t.Fatal(err)
	}
	var list []*appsv1.Deployment
	for _, object := range objects(t, []byte(rendered)) {
		if object["kind"] != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, d); err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	if len(list) != 2 {
		t.Fatalf("%d Deployments, want the manager and the metrics servers", len(list))
	}
	return list
}
