// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo"
	"github.com/serin-dev/serin/e2e/demo/story"
	"github.com/serin-dev/serin/e2e/demo/view"
)

// killVariable chooses what TestDemoStory kills: TARGET@VERSION:MOMENT, separated
// by commas. Without it nothing is killed.
const killVariable = "SERIN_E2E_KILL"

func TestMain(m *testing.M) {
	// As in the demo's command: what the libraries would log shows in the snapshots.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestDemoStory plays the story of the demo: v2 is promoted, v3 is rolled back,
// and no request fails that v3 did not cause.
func TestDemoStory(test *testing.T) {
	t := loud{test}
	options := demo.Options{
		Cluster: cluster.Options{Kubeconfig: os.Getenv(cluster.KubeconfigVariable), Context: os.Getenv(cluster.ContextVariable)},
		Out:     t.Output(),
		Faults:  faults(t),
		Within:  demo.Within,
		Clock:   clock.RealClock{},
	}
	d, err := demo.Prepare(t.Context(), options)
	if errors.Is(err, cluster.ErrNotPossible) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	summary, err := d.Play(t.Context(), view.NewPlain(t.Output()))
	if writeErr := view.WriteSummary(t.Output(), summary, nil); writeErr != nil {
		t.Error(writeErr)
	}
	if err != nil {
		t.Error(err)
	}
	for _, sentence := range summary.Broken {
		t.Error(sentence)
	}
}

func faults(t loud) []story.Fault {
	t.Helper()
	var list []story.Fault
	for text := range strings.SplitSeq(os.Getenv(killVariable), ",") {
		if text == "" {
			continue
		}
		fault, err := story.ParseFault(text)
		if err != nil {
			t.Fatalf("%s: %v", killVariable, err)
		}
		list = append(list, fault)
	}
	return list
}
