// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/traffic"
)

const (
	// nextTag is the tag of images of the next minor version, and nextVersion what their
	// programs say that they are.
	nextTag     = "next"
	nextVersion = "0.2.0"
	// presentTag is the tag of the images that the other scenarios run.
	presentTag = "dev"
)

// TestLongUpgradeInMidRelease upgrades Serin by a minor version in the middle of a release,
// uninstalls it, and installs the version of before again. The weight stays through all of it, no
// request fails, and the release goes on to its end.
func TestLongUpgradeInMidRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-upgrade", "long")
		s.requireLocal()
		s.loadNext()
		s.startWebsite("[{weight: 20, until: Manual}, {weight: 50, hold: 1m}]", "replicas: 3")

		s.setImage("v2", "v1")
		s.awaitWeight(20)
		s.measure("weight 20 before the upgrade", split(20))
		s.measure("weight 20 while Serin and the proxies are upgraded", split(20), s.upgradeToNext)
		s.measure("weight 20 without Serin", split(20), s.uninstallSerin)
		s.measure("weight 20 while Serin is installed again", split(20), s.installAgain)

		s.decide(v1alpha1.ControlPromote)
		s.awaitWeight(50)
		s.measure("weight 50 after it was installed again", split(50))
		s.follow(nil, v1alpha1.ReasonStable)
		s.requirePromoted()
		s.judge()
	})
}

// loadNext puts the images of the next version into the cluster, and has the present one there
// again at the end.
func (s *site) loadNext() {
	s.t.Helper()
	builder := images.NewBuilder(s.checkout, os.Stderr)
	builder.Publish = &images.Stamp{Version: nextVersion, Created: time.Unix(0, 0)}
	next := []images.Image{images.Serin, images.SerinProxy}
	for i := range next {
		next[i].Reference = strings.TrimSuffix(next[i].Reference, presentTag) + nextTag
	}
	if err := images.Load(s.t.Context(), builder, s.cluster, next...); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.stage.UpgradeRelease(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *site) upgradeToNext() {
	s.t.Helper()
	s.t.Log(time.Now().UTC().Format(timeOfDay), "upgrade Serin")
	err := s.stage.UpgradeRelease(s.t.Context(), "--set", "image.registry=docker.io", "--set", "image.tag="+nextTag)
	if err != nil {
		s.t.Fatal(err)
	}
	s.awaitProxiesOf(nextTag)
}

func (s *site) uninstallSerin() {
	s.t.Helper()
	s.t.Log(time.Now().UTC().Format(timeOfDay), "uninstall Serin")
	if err := s.stage.UninstallRelease(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.poll("the end of Serin's pods", func() bool {
		pods, err := s.core.CoreV1().Pods(stage.SystemNamespace).List(s.t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

func (s *site) installAgain() {
	s.t.Helper()
	s.t.Log(time.Now().UTC().Format(timeOfDay), "install Serin again")
	if err := s.stage.InstallRelease(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.awaitProxiesOf(presentTag)
}

// awaitProxiesOf returns when all proxies of the website run an image with a tag.
func (s *site) awaitProxiesOf(tag string) {
	s.t.Helper()
	s.awaitProxiesThat("of "+tag, func(pod corev1.Pod) bool { return strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+tag) })
}

// awaitProxiesThat returns when all proxies of the website are of a kind, none of another is left,
// and the weight is live in them.
func (s *site) awaitProxiesThat(kind string, is func(corev1.Pod) bool) {
	s.t.Helper()
	s.poll("proxies "+kind, func() bool {
		pods := s.pods(client.MatchingLabels{traffic.LabelProxy: siteName})
		for i := range pods {
			if !is(pods[i]) || !podutils.IsPodReady(&pods[i]) {
				return false
			}
		}
		_, live := s.window()
		return len(pods) > 0 && live
	})
	s.t.Log(time.Now().UTC().Format(timeOfDay), "all proxies are", kind)
}
