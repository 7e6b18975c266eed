// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// counters is a Prometheus that scrapes a website every five seconds, each of whose versions
// answers 20 requests a second. Of those of a bad hash, a fifth fails.
func counters(t *testing.T, bad func(hash string) bool) (url string) {
	t.Helper()
	hashOf := regexp.MustCompile(`pod_template_hash="([^"]*)"`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, at := r.FormValue("query"), r.FormValue("time")
		seconds, err := strconv.ParseFloat(at, 64)
		hash := hashOf.FindStringSubmatch(query)
		if err != nil || len(hash) != 2 || hash[1] == "" {
			t.Errorf("asked %q at %q", query, at)
			return
		}
		rate := int64(20)
		switch {
		case strings.Contains(query, "code=~") && bad(hash[1]):
			rate = 4
		case strings.Contains(query, "code=~"):
			rate = 0
		}
		var values []string
		for s := int64(seconds) / 5 * 5; s > int64(seconds)-120; s -= 5 {
			values = append(values, fmt.Sprintf(`[%d, "%d"]`, s, s*rate))
		}
		slices.Reverse(values)
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"job": "pods", "instance": %q}, "values": [%s]}]}}`,
			hash[1], strings.Join(values, ", "))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// sectionOf finds a section of a page by its heading.
func sectionOf(t *testing.T, name, heading string) section {
	t.Helper()
	sections := page(t, name)
	i := slices.IndexFunc(sections, func(s section) bool { return s.heading == heading })
	if i < 0 {
		t.Fatalf("%s has no section %q", name, heading)
	}
	return sections[i]
}

// documented are the template and the settings of the page, at another address and without the
// time that readers have.
func documented(t *testing.T, address string) (*v1alpha1.AnalysisTemplate, v1alpha1.RolloutSpec) {
	t.Helper()
	template, ro := &v1alpha1.AnalysisTemplate{}, &v1alpha1.Rollout{}
	for _, b := range sectionOf(t, "how-to/no-proxy.md", "Judge it by your metrics").blocks {
		var into any = ro
		if strings.Contains(b.text, "AnalysisTemplate") {
			into = template
		}
		if b.kind != "yaml" {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(b.text), into); err != nil {
			t.Fatal(err)
		}
	}
	metric := &template.Spec.Metrics[0]
	metric.Provider.Prometheus.Address, metric.Interval = v1alpha1.URL(address), "5s"
	template.ObjectMeta = metav1.ObjectMeta{Name: template.Name}
	ro.Spec.Analysis.Startup = &v1alpha1.Startup{For: "0s"}
	return template, ro.Spec
}

// withoutProxy brings a website up under the Rollout of the page. The step lasts longer than the first
// windows, so that what they counted is in the status before the version is promoted.
func withoutProxy(t *testing.T, bad func(s *scene, hash string) bool) *scene {
	t.Helper()
	s := newScene(t)
	template, spec := documented(t, counters(t, func(hash string) bool { return bad(s, hash) }))
	ro := newRollout(v1alpha1.Step{Weight: 50, Hold: "20s"})
	ro.Spec.Router, ro.Spec.Analysis = spec.Router, spec.Analysis
	s.create(deployment("website", 2), service("website"), template, ro)
	s.startOperator(newMeasurements())
	s.waitReady()
	return s
}

func TestAReleaseWithoutAProxyIsJudgedByAPrometheus(t *testing.T) {
	t.Parallel()
	t.Run("a good version", func(t *testing.T) {
		t.Parallel()
		s := withoutProxy(t, func(*scene, string) bool { return false })
		s.setImage(imageV2)
		s.eventually("requests of both versions are counted", func(context.Context) bool {
			a := s.rollout().Status.Analysis
			return a != nil && a.CanaryRequests >= 50 && a.StableRequests >= 50
		})
		s.waitReady()
		if pods := s.pods(); len(pods[imageV2]) != 2 || len(pods[imageV1]) != 0 {
			t.Errorf("pods %v", pods)
		}
	})
	t.Run("a bad version", func(t *testing.T) {
		t.Parallel()
		s := withoutProxy(t, func(s *scene, hash string) bool {
			stable := s.rollout().Status.Stable
			return stable == nil || hash != stable.Revision
		})
		s.setImage(imageV2)
		s.waitReason(v1alpha1.ReasonRolledBack)
		if d := s.rollout().Status.Decision; d == nil || d.Reason != "WorseThanStable" || !strings.Contains(d.Message, "more often than stable") {
			t.Errorf("decided %+v", d)
		}
		if pods := s.pods(); len(pods[imageV1]) != 2 || len(pods[imageV2]) != 0 {
			t.Errorf("pods %v", pods)
		}
	})
	t.Run("nothing that counts", func(t *testing.T) {
		t.Parallel()
		var refused string
		part := v1alpha1.Rollout{}
		for _, b := range sectionOf(t, "how-to/no-proxy.md", "What counts the requests").blocks {
			if b.kind == "yaml" {
				if err := yaml.UnmarshalStrict([]byte(b.text), &part); err != nil {
					t.Fatal(err)
				}
				continue
			}
			_, refused, _ = strings.Cut(strings.TrimSpace(b.text), "\n")
		}
		s := newScene(t)
		ro := newRollout(v1alpha1.Step{Weight: 50})
		ro.Spec.Router, ro.Spec.Analysis = part.Spec.Router, part.Spec.Analysis
		s.create(deployment("website", 2), service("website"), ro)
		s.startOperator(newMeasurements(), func(see *sight) { see.noTrafficMetrics = true })
		s.waitReason(v1alpha1.ReasonInvalidSpec)
		if _, _, message := ready(s.rollout()); message != refused {
			t.Errorf("refused by\n%s\nand the page says\n%s", message, refused)
		}
	})
}

// switching begins a play of a blue-green release whose Service is switched by its selector:
// callers must meet one version at every moment.
func switching(t *testing.T, b v1alpha1.BlueGreen) *stage {
	t.Helper()
	p := begin(t, func(c *cast) {
		c.rollout.Spec.Router, c.rollout.Spec.Strategy = v1alpha1.RouterNone, v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &b}
	})
	p.promise.oneVersion = true
	return p
}

// selects is the revision that the root Service selects; "" for none.
func (p *stage) selects() string {
	p.Helper()
	root := &corev1.Service{}
	if err := admin.Get(p.Context(), p.key("website"), root); err != nil {
		p.Fatal(err)
	}
	return root.Spec.Selector[appsv1.DefaultDeploymentUniqueLabelKey]
}

// live waits until the canary has a share of the requests.
func (p *stage) live(weight int32) {
	p.Helper()
	p.eventually(fmt.Sprintf("weight %d is live", weight), func(context.Context) bool {
		st := p.rollout().Status
		return st.Step != nil && st.Step.Weight == weight && p.programmed(st.Step.Index, weight)
	})
}

func TestBlueGreenWithoutAProxySwitchesTheSelector(t *testing.T) {
	t.Parallel()
	p := switching(t, v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, ScaleDownDelay: "1h"})
	p.setImage(imageV2)
	p.waitReason(v1alpha1.ReasonWaitingForApproval)
	st := p.rollout().Status
	blue, green := st.Stable.Revision, st.Canary.Revision
	if got := p.selects(); got != blue {
		t.Errorf("before the switch the Service selects %q, want %q", got, blue)
	}
	if pods := p.pods(); len(pods[imageV1]) != 4 || len(pods[imageV2]) != 4 {
		t.Errorf("pods %v, want 4 of both", pods)
	}
	p.operator.stop(t)
	p.operator = p.startOperator(p.time)
	p.decide(v1alpha1.ControlPromote)
	p.live(100)
	if got := p.selects(); got != green {
		t.Errorf("after the switch the Service selects %q, want %q", got, green)
	}
	if pods := p.pods(); len(pods[imageV1]) != 4 {
		t.Errorf("pods %v: the old version is gone before its time", pods)
	}
	p.operator.stop(t)
	p.operator = p.startOperator(p.time)
	p.pass(time.Hour)
	p.waitReady()
	if pods := p.pods(); len(pods[imageV1]) != 0 || len(pods[imageV2]) != 4 {
		t.Errorf("pods %v", pods)
	}
	p.checkGivenBack()
}

func TestBlueGreenWithoutAProxySwitchesBack(t *testing.T) {
	t.Parallel()
	p := switching(t, v1alpha1.BlueGreen{ScaleDownDelay: "1h"})
	p.setImage(imageV2)
	p.live(100)
	blue := p.rollout().Status.Stable.Revision
	p.decide(v1alpha1.ControlAbort)
	p.waitReason(v1alpha1.ReasonRolledBack)
	if pods := p.pods(); len(pods[imageV1]) != 4 || len(pods[imageV2]) != 0 {
		t.Errorf("pods %v", pods)
	}
	if h := p.rollout().Status.Stable.Revision; h != blue {
		t.Errorf("stable is %s, want %s", h, blue)
	}
	p.checkGivenBack()
}
