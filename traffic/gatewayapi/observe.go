// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// observer collects what there is of a split's routes.
type observer struct {
	router *Router
	target traffic.Target
	// known is false when nothing is known about what is wanted, and all stays as it is.
	known bool
	// selected is false for a split of another router: then nothing is looked for but what
	// this one left.
	selected bool
	objects  []traffic.Object
	problems []traffic.Problem
}

func (o *observer) observe(ctx context.Context) error {
	if !o.selected {
		return o.others(ctx)
	}
	for _, route := range traffic.RouteNames(o.target.Split) {
		gvk, served := o.router.options.Served.Kinds[route.Kind]
		if !served || !slices.Contains(routeKinds, route.Kind) {
			continue // Check says so
		}
		live, err := o.router.objects.Get(ctx, gvk, o.target.Split.Namespace, route.Name)
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
	if err := o.conflicts(ctx); err != nil {
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
	object = describe(live)
	holder := holderOf(live)
	object.Patched, object.Changed = true, holder == o.target.Split.Name
	switch {
	case object.Condition == traffic.ObjectTerminating:
	case holder != "" && !object.Changed:
		object.Condition = traffic.ObjectForeign
	case o.known:
		object.Condition = o.compare(live)
	}
	o.objects = append(o.objects, object)
}

// describe is a route that exists.
func describe(live *unstructured.Unstructured) traffic.Object {
	object := routes.Describe(live)
	object.Confirmation, object.Problem = confirm(live)
	return object
}

// compare reports whether a user's route is as wanted. One in which the split can't be
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
		live, err := o.router.objects.Get(ctx, gvk, o.target.Split.Namespace, own.name)
		if err != nil {
			return err
		}
		object := traffic.Object{GroupVersionKind: gvk, Name: own.name, Condition: traffic.ObjectAbsent}
		if live != nil {
			object = describe(live)
			object.Condition = compareOwn(object.Condition, live, o.target.Split.Name, spec)
		}
		o.objects = append(o.objects, object)
	}
	return nil
}

func compareOwn(observed traffic.ObjectCondition, live *unstructured.Unstructured, split string, spec map[string]any) traffic.ObjectCondition {
	switch {
	case observed == traffic.ObjectTerminating:
		return observed
	case makerOf(live) != split:
		return traffic.ObjectForeign
	case !equalSpec(spec, live.Object["spec"]), !routes.Labelled(live, split):
		return traffic.ObjectOutdated
	}
	return traffic.ObjectCurrent
}

// others observes the routes that belong to the split without being wanted any more.
func (o *observer) others(ctx context.Context) error {
	for _, gvk := range o.router.served() {
		list, err := o.router.objects.List(ctx, gvk, o.target.Split.Namespace, indexSplit, o.target.Split.Name)
		if err != nil {
			return err
		}
		for i := range list {
			o.other(gvk, &list[i])
		}
	}
	return nil
}

// other observes one route that belongs to the split.
func (o *observer) other(gvk schema.GroupVersionKind, live *unstructured.Unstructured) {
	if slices.ContainsFunc(o.objects, func(x traffic.Object) bool { return x.Kind == gvk.Kind && x.Name == live.GetName() }) {
		return
	}
	object := describe(live)
	object.Unwanted = o.known
	object.Changed = makerOf(live) != o.target.Split.Name
	object.Patched = object.Changed
	o.objects = append(o.objects, object)
}

// conflicts refuses a split that would need a route of the router's own where one exists that
// leads the root Service's traffic already: which of two routes a mesh follows depends
// on their age.
func (o *observer) conflicts(ctx context.Context) error {
	if !o.known || len(o.target.Resolved.Routes) > 0 {
		return nil
	}
	for _, gvk := range o.router.served() {
		list, err := o.router.objects.List(ctx, gvk, o.target.Split.Namespace, indexParents, o.target.Resolved.Root)
		if err != nil {
			return err
		}
		for i := range list {
			if live := &list[i]; len(splitOf(live)) == 0 {
				o.problems = append(o.problems, traffic.Unsupported("%s %q already routes the traffic of Service %q; name it in %s",
					live.GetKind(), live.GetName(), o.target.Resolved.Root, traffic.FieldRoutes))
			}
		}
	}
	return nil
}
