// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// observer collects what there is of a split's routes.
type observer struct {
	router *Router
	target traffic.Target
	// known is false when nothing is known about what is wanted, and all stays as it is.
	known bool
	// asked is false when the split asks for another router, so that nothing of this one
	// is looked for but what it left.
	asked    bool
	objects  []traffic.Object
	problems []traffic.Problem
}

func (o *observer) observe(ctx context.Context) error {
	if !o.asked {
		return o.others(ctx)
	}
	for _, route := range traffic.RouteNames(o.target.Split) {
		gvk, served := o.router.options.Served.Kinds[route.Kind]
		if !served || !slices.Contains(routeKinds, route.Kind) {
			continue // Check says so
		}
		live, err := o.router.get(ctx, gvk, o.target.Split.Namespace, route.Name)
		if err != nil {
			return err
		}
		o.named(gvk, route.Name, live)
	}
	if err := o.own(ctx); err != nil {
		return err
	}
	if err := o.others(ctx); err != nil {
		return err
	}
	if err := o.besides(ctx); err != nil {
		return err
	}
	if err := o.features(ctx); err != nil {
		return err
	}
	return o.policies(ctx)
}

// named observes a route that the split names.
func (o *observer) named(gvk schema.GroupVersionKind, name string, live *unstructured.Unstructured) {
	object := traffic.Object{GroupVersionKind: gvk, Name: name, Patched: true, Condition: traffic.ObjectAbsent}
	if live == nil {
		o.objects = append(o.objects, object)
		return
	}
	o.describe(&object, live)
	holder := holderOf(live)
	object.Changed = holder == o.target.Split.Name
	switch {
	case object.Condition == traffic.ObjectTerminating:
	case holder != "" && !object.Changed:
		object.Condition = traffic.ObjectForeign
	case o.known:
		object.Condition = o.compare(live)
	}
	o.objects = append(o.objects, object)
}

// describe fills in what is the same for every object that exists.
func (o *observer) describe(object *traffic.Object, live *unstructured.Unstructured) {
	object.UID, object.ResourceVersion, object.Generation = live.GetUID(), live.GetResourceVersion(), live.GetGeneration()
	object.Confirmation, object.Problem = confirm(live)
	object.Condition = traffic.ObjectCurrent
	if live.GetDeletionTimestamp() != nil {
		object.Condition = traffic.ObjectTerminating
	}
}

// compare tells whether a user's route is as wanted. One in which the split can't be
// expressed stays as it is, and refuses the split.
func (o *observer) compare(live *unstructured.Unstructured) traffic.ObjectCondition {
	changed, err := Changed(live, o.target, o.router.options.Served.Schema)
	switch {
	case err != nil:
		o.problems = append(o.problems, refusals(fmt.Sprintf("%s %q: ", live.GetKind(), live.GetName()), err)...)
		return traffic.ObjectCurrent
	case same(live, changed):
		return traffic.ObjectCurrent
	default:
		return traffic.ObjectOutdated
	}
}

// own observes the routes that the router makes.
func (o *observer) own(ctx context.Context) error {
	if !o.known {
		return nil
	}
	for _, own := range ownRoutes(o.target.Resolved, o.target.Root) {
		gvk, served := o.router.options.Served.Kinds[own.kind]
		spec, err := own.spec(o.target.Resolved, o.router.options.Served.Schema)
		if !served || err != nil {
			continue // Check says so
		}
		live, err := o.router.get(ctx, gvk, o.target.Split.Namespace, own.name)
		if err != nil {
			return err
		}
		object := traffic.Object{GroupVersionKind: gvk, Name: own.name, Condition: traffic.ObjectAbsent}
		if live != nil {
			o.describe(&object, live)
			object.Condition = compareOwn(object.Condition, live, o.target.Split.Name, spec)
		}
		o.objects = append(o.objects, object)
	}
	return nil
}

func compareOwn(observed traffic.ObjectCondition, live *unstructured.Unstructured, split string, spec map[string]any) traffic.ObjectCondition {
	labels := live.GetLabels()
	switch {
	case observed == traffic.ObjectTerminating:
		return observed
	case makerOf(live) != split:
		return traffic.ObjectForeign
	case !equalSpec(spec, live.Object["spec"]):
		return traffic.ObjectOutdated
	}
	for key, value := range ownLabels(split) {
		if labels[key] != value {
			return traffic.ObjectOutdated
		}
	}
	return traffic.ObjectCurrent
}

// others observes the routes that belong to the split without being wanted any more.
func (o *observer) others(ctx context.Context) error {
	for _, gvk := range o.router.routes() {
		routes, err := o.router.list(ctx, gvk, o.target.Split.Namespace, client.MatchingFields{indexSplit: o.target.Split.Name})
		if err != nil {
			return err
		}
		for i := range routes {
			o.other(gvk, &routes[i])
		}
	}
	return nil
}

// other observes one route that belongs to the split.
func (o *observer) other(gvk schema.GroupVersionKind, live *unstructured.Unstructured) {
	if slices.ContainsFunc(o.objects, func(x traffic.Object) bool { return x.Kind == gvk.Kind && x.Name == live.GetName() }) {
		return
	}
	object := traffic.Object{GroupVersionKind: gvk, Name: live.GetName(), Unwanted: o.known}
	o.describe(&object, live)
	object.Changed = makerOf(live) != o.target.Split.Name
	object.Patched = object.Changed
	o.objects = append(o.objects, object)
}

// besides refuses a split that would need a route of the router's own beside one that
// leads the root Service's traffic already: which of two routes a mesh follows depends
// on their age.
func (o *observer) besides(ctx context.Context) error {
	if !o.known || len(o.target.Resolved.Routes) > 0 {
		return nil
	}
	for _, gvk := range o.router.routes() {
		routes, err := o.router.list(ctx, gvk, o.target.Split.Namespace, client.MatchingFields{indexParents: o.target.Resolved.Root})
		if err != nil {
			return err
		}
		for i := range routes {
			if live := &routes[i]; len(splitOf(live)) == 0 {
				o.problems = append(o.problems, refusal("%s %q leads the traffic of Service %q already; name it in %s",
					live.GetKind(), live.GetName(), o.target.Resolved.Root, traffic.FieldRoutes))
			}
		}
	}
	return nil
}
