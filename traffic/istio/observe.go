// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// world is what there is of Istio's objects in a split's namespace. The objects are
// shared with the cache and must not be changed.
type world struct {
	kinds
	// selected is false for a split of another router: then nothing is looked for but what
	// this one left.
	selected      bool
	routes, rules []unstructured.Unstructured
}

// found is what a world has for a split.
type found struct {
	items []item
	// refusals are why the split can't be served by these objects.
	refusals []string
}

// item is an object with what is wanted of it.
type item struct {
	traffic.Object
	live *unstructured.Unstructured
	// spec that is wanted, and the record that goes with it when it is patched.
	spec   map[string]any
	record string
}

// find compares everything that a split needs or has with what is wanted. It is pure.
//
// What is refused stays as it is, as everything does while nothing is known about what is
// wanted: then what is there counts as wanted.
func (w world) find(target traffic.Target) found {
	split := target.Resolved
	split.Namespace, split.Name = target.Split.Namespace, target.Split.Name
	known := len(split.Ports) > 0 && target.Root != nil
	var out found
	known = out.addRules(w, split, known)
	out.addRoutes(w, target, split, known)
	return out
}

func (f *found) add(items ...item) { f.items = append(f.items, items...) }

func (f *found) refuse(format string, args ...any) {
	f.refusals = append(f.refusals, fmt.Sprintf(format, args...))
}

// addRules adds the DestinationRules that the router made or has to make. It returns
// whether it is still known what is wanted.
func (f *found) addRules(w world, split traffic.Split, known bool) bool {
	var all []rule
	for i := range w.rules {
		u := &w.rules[i]
		spec, _ := u.Object["spec"].(map[string]any)
		all = append(all, rule{name: u.GetName(), spec: spec, own: routes.IsOwn(u)})
	}
	var wanted []rule
	if known && w.selected {
		var unfit *unfitRule
		if wanted, unfit = makeRules(all, split); unfit != nil {
			f.refuse("spec.backends: DestinationRule %q: %s", unfit.name, unfit.why)
			known = false
		}
	}
	for _, r := range wanted {
		f.add(w.own(kindRule, r.name, byName(w.rules, r.name), split.Name, r.spec))
	}
	for i := range w.rules {
		u := &w.rules[i]
		if madeFor(u, split.Name) && !slices.ContainsFunc(wanted, func(r rule) bool { return r.name == u.GetName() }) {
			f.add(w.leftOver(u, known))
		}
	}
	for i := range f.items {
		f.items[i].Prepares = true
	}
	return known
}

// addRoutes adds the VirtualServices that the split names, that it has changed, and the
// one of its own.
func (f *found) addRoutes(w world, target traffic.Target, split traffic.Split, known bool) {
	var named []namedRoute
	if w.selected {
		named = namedRoutes(target.Split)
	}
	for _, n := range named {
		f.addPatched(w, n, target, split, known)
	}
	inMesh := len(named) == 0 && known && w.selected
	if inMesh {
		f.addMesh(w, target, split)
	}
	for i := range w.routes {
		u := &w.routes[i]
		isNamed := slices.ContainsFunc(named, func(n namedRoute) bool { return n.name == u.GetName() })
		switch {
		case madeFor(u, split.Name):
			if u.GetName() != ownName(split.Name) || !inMesh {
				f.add(w.leftOver(u, known))
			}
		case holderOf(u) == split.Name && !isNamed:
			object := w.object(u)
			object.Patched, object.Changed, object.Unwanted, object.Condition = true, true, true, traffic.ObjectOutdated
			f.add(item{Object: object, live: u})
		}
	}
}

// namedRoute is a VirtualService of a user, with the names of its HTTP routes to
// change; none for all of them.
type namedRoute struct {
	name string
	only []string
}

func namedRoutes(split *splitv1.TrafficSplit) []namedRoute {
	var out []namedRoute
	for _, r := range traffic.RouteNames(split) {
		if r.Kind != kindVirtualService {
			continue
		}
		i := slices.IndexFunc(out, func(n namedRoute) bool { return n.name == r.Name })
		switch {
		case i < 0 && r.Section == "":
			out = append(out, namedRoute{name: r.Name})
		case i < 0:
			out = append(out, namedRoute{name: r.Name, only: []string{r.Section}})
		case r.Section == "":
			out[i].only = nil
		case len(out[i].only) > 0:
			out[i].only = append(out[i].only, r.Section)
		}
	}
	return out
}

// addPatched adds a VirtualService of a user that the split names.
func (f *found) addPatched(w world, n namedRoute, target traffic.Target, split traffic.Split, known bool) {
	u := byName(w.routes, n.name)
	if u == nil {
		f.add(item{Object: traffic.Object{GroupVersionKind: w.kinds.routes(), Name: n.name, Patched: true, Condition: traffic.ObjectAbsent}})
		return
	}
	out := item{Object: w.object(u), live: u}
	holder := holderOf(u)
	out.Patched, out.Changed = true, holder == split.Name
	switch {
	case out.Condition == traffic.ObjectTerminating:
	case holder != "" && holder != split.Name:
		out.Condition = traffic.ObjectForeign
	case known:
		if err := out.want(target.Split, split, n.only); err != nil {
			f.refuse("%s: VirtualService %q: %s", traffic.FieldRoutes, n.name, err)
		}
	}
	f.add(out)
}

// want renders what a patched object is to be, from what its owner means it to be.
func (i *item) want(source *splitv1.TrafficSplit, split traffic.Split, only []string) error {
	rendered, record, err := Render(originalOf(i.live, source), split, only)
	if err != nil {
		return err
	}
	encoded, err := record.Encode()
	if err != nil {
		return err
	}
	i.spec, i.record = rendered, encoded
	if routes.Digest(rendered) != routes.Digest(i.live.Object["spec"]) || i.live.GetAnnotations()[annotationOriginal] != encoded ||
		i.live.GetAnnotations()[traffic.AnnotationSplit] != split.Name {
		i.Condition = traffic.ObjectOutdated
	}
	return nil
}

// addMesh adds the VirtualService of a split that names none. Istio would ignore it where
// one of a user has the root Service within the mesh.
func (f *found) addMesh(w world, target traffic.Target, split traffic.Split) {
	name := ownName(split.Name)
	u := byName(w.routes, name)
	spec, err := MakeMeshSpec(split, target.Root)
	theirs := slices.IndexFunc(w.routes, func(o unstructured.Unstructured) bool {
		other, _ := o.Object["spec"].(map[string]any)
		return !routes.IsOwn(&o) && serves(other, split.Namespace, split.Root)
	})
	if theirs >= 0 {
		f.refuse("%s: VirtualService %q has the host of the root Service within the mesh, and Istio takes no second one; name it",
			traffic.FieldRoutes, w.routes[theirs].GetName())
	}
	switch {
	case theirs < 0 && err == nil:
		f.add(w.own(kindVirtualService, name, u, split.Name, spec))
	case u != nil && madeFor(u, split.Name):
		f.add(w.leftOver(u, false)) // Check says why
	}
}

// own is an object that the router makes.
func (w world) own(kind, name string, u *unstructured.Unstructured, split string, spec map[string]any) item {
	out := item{Object: traffic.Object{GroupVersionKind: w.kind(kind), Name: name, Condition: traffic.ObjectAbsent}, spec: spec, live: u}
	if u == nil {
		return out
	}
	out.Object = w.object(u)
	switch {
	case out.Condition == traffic.ObjectTerminating:
	case !madeFor(u, split):
		out.Condition = traffic.ObjectForeign
	case routes.Digest(u.Object["spec"]) != routes.Digest(spec), !routes.Labelled(u, split):
		out.Condition = traffic.ObjectOutdated
	}
	return out
}

// leftOver is an object of the split that nothing asks for. While nothing is known
// about what is wanted, it stays.
func (w world) leftOver(u *unstructured.Unstructured, known bool) item {
	out := item{Object: w.object(u), live: u}
	out.Unwanted = known
	return out
}

func (w world) kind(kind string) schema.GroupVersionKind {
	if kind == kindRule {
		return w.kinds.rules()
	}
	return w.kinds.routes()
}

// object is an object that exists.
func (w world) object(u *unstructured.Unstructured) traffic.Object {
	o := routes.Describe(u)
	o.Confirmation, o.Problem = confirmationOf(u)
	return o
}

func byName(list []unstructured.Unstructured, name string) *unstructured.Unstructured {
	for i := range list {
		if list[i].GetName() == name {
			return &list[i]
		}
	}
	return nil
}
