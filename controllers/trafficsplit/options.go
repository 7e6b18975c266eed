// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// Options of the controller.
type Options struct {
	// Routers that the operator offers.
	Routers []traffic.Router
	// DefaultRouter serves the splits without the annotation serin.dev/router. It
	// has to be one of Routers or of Elsewhere.
	DefaultRouter string
	// Elsewhere are the names of routers that other controllers are: a split that
	// asks for one is left alone entirely. Default: smi.
	Elsewhere []string
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock gives the time of transitions.
	Clock clock.PassiveClock
	// Workers is the number of splits that are handled at once. Default 4.
	Workers int
}

// complete fills in the defaults and finds mistakes.
func (o *Options) complete() error {
	if o.Elsewhere == nil {
		o.Elsewhere = []string{"smi"}
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Recorder == nil || o.Clock == nil || len(o.Routers) == 0 {
		return errors.New("trafficsplit.Options: Routers, Recorder and Clock are required")
	}
	if o.claim(o.DefaultRouter) == plan.ClaimNobody {
		return fmt.Errorf("trafficsplit.Options: DefaultRouter %q is none of the routers", o.DefaultRouter)
	}
	return nil
}

// routerName is the router that a split asks for.
func (o *Options) routerName(split *splitv1.TrafficSplit) string {
	if name, ok := split.Annotations[splitv1.AnnotationRouter]; ok {
		return name
	}
	return o.DefaultRouter
}

// claim says who serves the splits that ask for a router. Names are compared in
// full: a name that is not known is never taken for another one.
func (o *Options) claim(router string) plan.Claim {
	switch {
	case slices.ContainsFunc(o.Routers, func(r traffic.Router) bool { return r.Name() == router }):
		return plan.ClaimOurs
	case slices.Contains(o.Elsewhere, router):
		return plan.ClaimElsewhere
	default:
		return plan.ClaimNobody
	}
}
