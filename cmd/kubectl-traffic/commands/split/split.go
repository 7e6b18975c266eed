// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
)

// loaded is a split as it was read.
type loaded struct {
	api   client.Client
	split *splitv1.TrafficSplit
	tags  map[string]string
	block trafficblock.Block
}

// loadSplit reads a split and its tags.
func loadSplit(ctx context.Context, api client.Client, namespace, name string) (*loaded, error) {
	split := &splitv1.TrafficSplit{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, split); err != nil {
		return nil, err
	}
	given, err := tags.Read(split.Annotations)
	if err != nil {
		return nil, fmt.Errorf("TrafficSplit %s: %w", name, err)
	}
	var backends []trafficblock.Backend
	for _, b := range split.Spec.Backends {
		if b.Invalid != "" {
			return nil, fmt.Errorf("TrafficSplit %s: %s", name, b.Invalid)
		}
		backends = append(backends, trafficblock.Backend{Service: b.Service, Weight: b.Weight})
	}
	return &loaded{api: api, split: split, tags: given, block: trafficblock.Read(backends, given)}, nil
}

// mayBeChanged refuses splits whose traffic a Rollout decides, and those whose ports
// differ: percentages of the whole would be true of some ports only.
func (l *loaded) mayBeChanged() error {
	routing, err := splitv1.RoutingOf(l.split)
	if err != nil {
		return fmt.Errorf("the TrafficSplit %s: %w", l.split.Name, err)
	}
	for port, rules := range routing.Ports {
		if rules.Weights != nil {
			return fmt.Errorf("the TrafficSplit %s has weights for the port %s, and percentages for all would not change those; edit its annotation %s first",
				l.split.Name, port, splitv1.AnnotationRouting)
		}
	}
	name := l.split.Labels[v1alpha1.LabelRollout]
	for _, o := range l.split.OwnerReferences {
		if o.Kind == "Rollout" {
			name = o.Name
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("the TrafficSplit %s belongs to the Rollout %s, which would revert any change of it; use kubectl traffic rollout promote|skip|abort|pause %s",
		l.split.Name, name, name)
}

// changed is the split with another block, and the writes that lead there.
func (l *loaded) changed(ctx context.Context, block trafficblock.Block) (*splitv1.TrafficSplit, []write, error) {
	after := l.split.DeepCopy()
	after.Annotations = tags.Write(after.Annotations, block.Tags())
	after.Spec.Backends = nil
	for _, b := range block.Backends() {
		after.Spec.Backends = append(after.Spec.Backends, splitv1.Backend{Service: b.Service, Weight: b.Weight})
	}
	services, err := l.services(ctx, block)
	if err != nil {
		return nil, nil, err
	}
	writes, err := l.tagWrites(ctx, block.Tags(), services)
	if err != nil {
		return nil, nil, err
	}
	if !reflect.DeepEqual(l.split.Spec, after.Spec) || !maps.Equal(l.split.Annotations, after.Annotations) {
		writes = append(writes, patchSplit(l.split, after))
	}
	gone, err := l.untagWrites(ctx, block.Tags())
	return after, append(writes, gone...), err
}

// services are the root Service and those that the change brings in or tags. One that
// does not exist is refused: it is more likely misspelt than still to come.
func (l *loaded) services(ctx context.Context, block trafficblock.Block) (map[string]*corev1.Service, error) {
	root := tags.Root(l.split)
	needed := map[string]bool{}
	known := map[string]bool{}
	for _, b := range l.split.Spec.Backends {
		known[b.Service] = true
	}
	for _, t := range block {
		if t.Service == root {
			return nil, fmt.Errorf("%s is the root Service of the split %s, which can't be a revision of itself; name the Service of one version", root, l.split.Name)
		}
		if t.Tag != "" || !known[t.Service] {
			needed[t.Service] = true
		}
		needed[root] = needed[root] || t.Tag != ""
	}
	found := map[string]*corev1.Service{}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if !needed[name] {
			continue
		}
		service, err := l.service(ctx, name)
		if err != nil {
			return nil, err
		}
		if service == nil {
			return nil, fmt.Errorf("%s is neither a tag of the split %s nor a Service in the namespace %s; correct it, or create the Service first", name, l.split.Name, l.split.Namespace)
		}
		found[name] = service
	}
	return found, nil
}

// service is nil where there is none of that name.
func (l *loaded) service(ctx context.Context, name string) (*corev1.Service, error) {
	service := &corev1.Service{}
	err := l.api.Get(ctx, client.ObjectKey{Namespace: l.split.Namespace, Name: name}, service)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return service, err
}

// tagWrites make the Services of the tags, or fix them.
func (l *loaded) tagWrites(ctx context.Context, wanted map[string]string, services map[string]*corev1.Service) ([]write, error) {
	var writes []write
	for _, tag := range slices.Sorted(maps.Keys(wanted)) {
		want, err := tags.Make(tag, l.split, services[tags.Root(l.split)], services[wanted[tag]])
		if err != nil {
			return nil, err
		}
		have, err := l.service(ctx, want.Name)
		if err != nil {
			return nil, err
		}
		if have == nil {
			writes = append(writes, createService(want))
			continue
		}
		next, err := tags.Adopt(have, want, l.split)
		if err != nil {
			return nil, fmt.Errorf("the tag %q: %w", tag, err)
		}
		if !reflect.DeepEqual(have, next) {
			writes = append(writes, updateService(have, next))
		}
	}
	return writes, nil
}

// untagWrites remove the Services of tags that are gone, as far as they are the split's.
func (l *loaded) untagWrites(ctx context.Context, wanted map[string]string) ([]write, error) {
	var writes []write
	for _, tag := range slices.Sorted(maps.Keys(l.tags)) {
		if wanted[tag] != "" {
			continue
		}
		name, err := tags.Name(tag, l.split)
		if err != nil {
			continue // the annotation was written by hand: there can be no such Service
		}
		service, err := l.service(ctx, name)
		if err != nil {
			return nil, err
		}
		if service != nil && tags.Made(service, l.split) {
			writes = append(writes, deleteService(service))
		}
	}
	return writes, nil
}
