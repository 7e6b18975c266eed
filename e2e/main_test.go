// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// atOnce is how many scenarios run at the same time unless -parallel says otherwise: they
// mostly wait.
const atOnce = 4

var (
	soak     = flag.Bool("soak", false, "run the scenarios with a high load, and with many more changes")
	keep     = flag.Bool("keep", false, "use Serin and the gateway as an earlier run with -keep left them, or install them, and leave them")
	recorded = flag.String("record", "", "folder to write what each scenario judges into, as JSON")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// As in the demo's command: what the libraries would log shows in the conditions.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	go func() {
		<-life.Done()
		end(1)
	}()
	end(m.Run())
}

// end removes what the tests installed and ends the run.
func end(code int) {
	if err := uninstall(); err != nil {
		fmt.Fprintln(os.Stderr, mark, "remove what the tests installed:", err)
		code = 1
	}
	os.Exit(code)
}

// life ends when the run is interrupted.
var life, _ = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

// scale is how much the scenarios do.
type scale struct {
	// rate is the number of requests a second of each load.
	rate int
	// weights are those that a TrafficSplit gets, one after another.
	weights []int32
	// canaryWeights are those that CanaryReleases get.
	canaryWeights []int32
	// some are as many requests as tell a share.
	some int64
}

// sizes is the scale of this run.
func sizes() scale {
	short := scale{rate: 200, weights: []int32{10, 0, 37, 100, 62}, canaryWeights: []int32{50, 0, 100}, some: 400}
	if !*soak {
		return short
	}
	long := scale{rate: 1000, canaryWeights: []int32{50, 0, 10, 100, 30}, some: 1000}
	for range 10 {
		long.weights = append(long.weights, short.weights...)
	}
	return long
}
