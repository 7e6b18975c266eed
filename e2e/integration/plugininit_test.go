// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTheRolloutThatInitWritesIsAdmitted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(deployment("website", 3), service("website"), deployment("batch", 1), deployment("blog", 1), service("blog"), deployment("shop", 1))
	second, unnamed := service("blog"), service("shop")
	second.Name, unnamed.Spec.Ports[0].TargetPort = "blog-public", intstr.FromString("web")
	s.create(second, unnamed)

	file := filepath.Join(t.TempDir(), "rollout.yaml")
	a := s.does("rollout init deployment/website --rps 40")
	if err := os.WriteFile(file, []byte(a.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.does("rollout lint -f " + file); got.out != "rollout.serin.dev/website: would be accepted\n" {
		t.Errorf("lint says %s", got.out)
	}
	s.apply([]byte(a.out))
	if got := s.rollout().Spec; got.Service != "website" || got.WorkloadRef.Name != "website" || len(got.Strategy.Steps) < 2 || got.Analysis.Tolerance != "0.5pp" {
		t.Errorf("the API server has %+v", got)
	}
	if got := s.does("rollout init deployment/blog --service blog-public"); !strings.Contains(got.out, "Assumed: the Service blog-public receives 20 requests/s") {
		t.Errorf("nothing says that the traffic was assumed:\n%s", got.out)
	}
	for line, want := range map[string]string{
		"rollout init deployment/nosuch":                  "there is no Deployment nosuch in the namespace " + s.namespace,
		"rollout init deployment/batch":                   "selects the pods of the Deployment batch, which have the labels app=batch: create one",
		"rollout init deployment/blog":                    "2 Services select the pods of the Deployment blog: blog, blog-public",
		"rollout init deployment/shop":                    `sends port 80 to the container port "web"`,
		"rollout init deployment/website":                 "the Rollout website releases the Deployment website already",
		"rollout init statefulset/website":                `"statefulset/website" is not a Deployment`,
		"rollout init deployment/blog --tolerance plenty": "--tolerance: ",
		"rollout init deployment/blog --rps=-1":           "--rps: give more than 0 requests per second",
		"rollout init deployment/blog --failure-rate 3%":  "--failure-rate: give --rps too",
	} {
		if got := s.traffic("", line); got.status == 0 || !strings.Contains(got.errs, want) {
			t.Errorf("%s: exit status %d: %s", line, got.status, got.errs)
		}
	}
}

func TestThePageAboutTheFirstRolloutCanBeFollowed(t *testing.T) {
	t.Parallel()
	files, _ := beginning(t)
	delete(files, rolloutFile) // the page has the plugin write it
	r := newReader(t, files)
	r.save()
	r.begun, r.functions = true, pathWithPlugin(t, nil)
	r.play(whole(page(t, "how-to/first-rollout.md")))
}
