// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/demo/story"
	"github.com/serin-dev/serin/e2e/demo/view"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// killVariable chooses what TestDemo kills: TARGET@VERSION:MOMENT, separated by commas.
// Without it nothing is killed.
const killVariable = "SERIN_E2E_KILL"

// TestDemo plays the story of the demo as the command does: v2 is promoted, v3 is rolled back,
// and no request fails that v3 did not cause.
func TestDemo(t *testing.T) {
	play(t, func(a *attempt) {
		i := requireCluster(a.T)
		i.metrics.scraped(a)
		d, err := demo.On(i.cluster, demo.Options{
			Out: a.Output(), Faults: faults(a), Within: demo.Within, Installed: true, Clock: clock.RealClock{},
		})
		if err != nil {
			a.Fatal(err)
		}
		a.Cleanup(func() {
			if err := d.Clean(context.Background()); err != nil {
				a.Error(err)
			}
		})
		summary, err := d.Play(a.Context(), view.NewPlain(a.Output()))
		if writeErr := view.WriteSummary(a.Output(), summary, nil); writeErr != nil {
			a.Error(writeErr)
		}
		if err != nil {
			a.Error(err)
		}
		for _, sentence := range summary.Broken {
			a.Error(sentence)
		}
	})
}

// TestLongDemoFromARegistry plays the demo as make demo DEMO_FLAGS=--from-registry does: a new
// cluster, whose node has no image, pulls all of them with a password.
func TestLongDemoFromARegistry(t *testing.T) {
	t.Setenv(cluster.KubeconfigVariable, "") // pods of a cluster elsewhere can't reach this machine
	t.Setenv(cluster.ContextVariable, "")
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(mark, err)
	}
	options := demo.Options{
		Cluster: cluster.Options{Dir: filepath.Join(checkout.State, "registry-cluster")},
		Out:     t.Output(), FromRegistry: true, Within: demo.Within, Clock: clock.RealClock{},
	}
	remove := func() {
		if err := demo.Remove(context.Background(), options); err != nil {
			t.Error(mark, err)
		}
	}
	remove() // what an earlier run left
	t.Cleanup(remove)
	d, err := demo.Prepare(t.Context(), options)
	if impossible, is := errors.AsType[*cluster.NotPossibleError](err); is {
		testenv.Missing(t, impossible.Reason, impossible.Remedy)
	}
	if err != nil {
		t.Fatal(mark, err)
	}
	begun := readPressure()
	summary, err := d.Play(t.Context(), view.NewPlain(t.Output()))
	t.Log(begun.since(readPressure()))
	if writeErr := view.WriteSummary(t.Output(), summary, nil); writeErr != nil {
		t.Error(mark, writeErr)
	}
	if err != nil {
		t.Error(mark, err)
	}
	for _, sentence := range summary.Broken {
		t.Error(mark, sentence)
	}
	i := &installation{checkout: checkout, cluster: d.Cluster}
	if err := i.connect(); err != nil {
		t.Fatal(mark, err)
	}
	requirePulled(t, i)
}

// pulled is what the kubelet says of an image that it has pulled, or that the node had.
var pulled = regexp.MustCompile(`^(Successfully pulled|Container) image "([^/"]+)/([^"]+)"`)

// requirePulled: every image of the demo's story was pulled from a registry on this machine, and
// no container of Serin or the demo was started from another.
func requirePulled(t *testing.T, i *installation) {
	t.Helper()
	missing := map[string]bool{}
	for _, image := range images.Table {
		missing[strings.TrimPrefix(image.Reference, "docker.io/")] = true
	}
	delete(missing, "serin-dev/demo-app:v4") // which the story does not play
	for _, namespace := range []string{stage.SystemNamespace, stage.Namespace} {
		events, err := i.core.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Pulled"})
		if err != nil {
			t.Fatal(mark, err)
		}
		for _, event := range events.Items {
			m := pulled.FindStringSubmatch(event.Message)
			if m == nil || !strings.HasPrefix(m[2], i.cluster.MachineAddress+":") {
				t.Error(mark, "not from the registry:", event.Message)
				continue
			}
			if m[1] == "Successfully pulled" {
				t.Log(event.Message)
				delete(missing, m[3])
			}
		}
	}
	for image := range missing {
		t.Error(mark, "was not pulled:", image)
	}
}

func faults(a *attempt) (list []story.Fault) {
	a.Helper()
	for text := range strings.SplitSeq(os.Getenv(killVariable), ",") {
		if text == "" {
			continue
		}
		fault, err := story.ParseFault(text)
		if err != nil {
			a.Fatalf("%s: %v", killVariable, err)
		}
		list = append(list, fault)
	}
	return list
}
