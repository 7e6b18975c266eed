// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// Options of the controller.
type Options struct {
	// Routers that the operator offers.
	Routers []traffic.Router
	// DefaultRouter serves the splits that name none. It
	// has to be one of Routers or of Elsewhere.
	DefaultRouter string
	// Elsewhere are the names of routers that other controllers are: a split that
	// asks for one is left alone entirely, unless a Rollout made it and it is one of
	// Routers as well. Default: smi.
	Elsewhere []string
	// Served is how the cluster serves TrafficSplits.
	Served traffic.Served
	// Changed are splits of whose proxies something else was read. Optional.
	Changed <-chan event.TypedGenericEvent[types.NamespacedName]
	// PodZones is true where the operator may not read nodes: the zones of proxies are those of
	// their labels.
	PodZones bool
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
	if o.router(o.DefaultRouter) == nil && !slices.Contains(o.Elsewhere, o.DefaultRouter) {
		return fmt.Errorf("trafficsplit.Options: DefaultRouter %q is none of the routers", o.DefaultRouter)
	}
	return nil
}

// routerName is the router that a split asks for.
func (o *Options) routerName(split *splitv1.TrafficSplit) string {
	return traffic.RouterName(split, o.DefaultRouter)
}

// router is the router of a name; nil when there is none. Names are compared in
// full: a name that is not known is never taken for another one.
func (o *Options) router(name string) traffic.Router {
	for _, r := range o.Routers {
		if r.Name() == name {
			return r
		}
	}
	return nil
}

// means are those of the router that a split asks for; "" when there is none.
func (o *Options) means(split *splitv1.TrafficSplit) traffic.Means {
	if r := o.router(o.routerName(split)); r != nil {
		return r.Means()
	}
	return ""
}

// claim says who serves a split. What a user leaves to another controller is that
// controller's alone. A Rollout's split is looked after as well: the Rollout waits for
// what its status says.
func (o *Options) claim(split *splitv1.TrafficSplit) plan.Claim {
	name := o.routerName(split)
	elsewhere, released := slices.Contains(o.Elsewhere, name), split.Labels[v1alpha1.LabelRollout] != ""
	switch {
	case elsewhere && !released:
		return plan.ClaimElsewhere
	case o.router(name) != nil:
		return plan.ClaimOurs
	case elsewhere:
		return plan.ClaimElsewhere
	default:
		return plan.ClaimUnknownRouter
	}
}
