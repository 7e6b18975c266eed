// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/demo"
	"github.com/serin-dev/serin/e2e/demo/story"
	"github.com/serin-dev/serin/e2e/demo/view"
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
