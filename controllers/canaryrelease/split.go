// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/plan"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

const (
	revisionLabel = appsv1.DefaultDeploymentUniqueLabelKey
	totalWeight   = 100
	// maxScale keeps weights within what a TrafficSplit takes.
	maxScale = 10_000_000
)

// portWeights are the weights of the backends by port, as the annotation has them.
type portWeights map[string]map[string]int32

// setSplit makes a TrafficSplit what it has to be for some weights, whatever somebody made
// of it meanwhile.
//
// Where ports have weights of their own, these are in an annotation, and spec.backends has
// the largest of them. A change of an annotation does not change the generation, by which
// routers say what is in effect. So spec.backends changes with it: both weights are
// multiplied by a number that grows, which leaves their ratio as it is.
func (s *scene) setSplit(split *splitv1.TrafficSplit, root *corev1.Service, weights []plan.PortWeight, of string) {
	was := split.DeepCopy()
	mark(split, s.CanaryRelease, of)
	set := func(key, value string) {
		if value == "" {
			delete(split.Annotations, key)
			return
		}
		metav1.SetMetaDataAnnotation(&split.ObjectMeta, key, value)
	}
	for key, value := range s.annotations(root, weights) {
		set(key, value)
	}
	most := slices.MaxFunc(append(slices.Clone(weights), plan.PortWeight{}), func(a, b plan.PortWeight) int { return int(a.Weight - b.Weight) }).Weight
	scale := scaleOf(was)
	split.Spec = splitv1.TrafficSplitSpec{Service: root.Name, Backends: backends(root.Name, most, scale)}
	if !maps.Equal(was.Annotations, split.Annotations) && slices.Equal(was.Spec.Backends, split.Spec.Backends) {
		split.Spec.Backends = backends(root.Name, most, scale%maxScale+1)
	}
}

func backends(root string, weight, scale int32) []splitv1.Backend {
	return []splitv1.Backend{
		{Service: workload.BackendName(root, v1alpha1.RoleStable), Weight: (totalWeight - weight) * scale},
		{Service: workload.BackendName(root, v1alpha1.RoleCanary), Weight: weight * scale},
	}
}

// scaleOf is what the weights of a split were multiplied by; 1 when they are not ours.
func scaleOf(split *splitv1.TrafficSplit) int32 {
	var sum int64
	for _, b := range split.Spec.Backends {
		sum += int64(b.Weight)
	}
	if sum <= 0 || sum%totalWeight != 0 || sum/totalWeight > maxScale {
		return 1
	}
	return int32(sum / totalWeight) //nolint:gosec // at most maxScale
}

// annotations are those of a split by key; "" for one that it must not have.
func (s *scene) annotations(root *corev1.Service, weights []plan.PortWeight) map[string]string {
	return map[string]string{
		splitv1.AnnotationRouter:         string(v1alpha1.RouterNginx),
		splitv1.AnnotationPortWeights:    encodeWeights(root.Name, weights),
		splitv1.AnnotationPortProtocols:  s.protocols(root),
		splitv1.AnnotationProxyResources: encodeResources(s.CanaryRelease.Spec.Resources),
		splitv1.AnnotationDefaultBackend: "", splitv1.AnnotationMirror: "", splitv1.AnnotationStickyCookie: "", splitv1.AnnotationRoutes: "",
	}
}

// encodeWeights is the annotation for weights that differ from port to port.
func encodeWeights(root string, weights []plan.PortWeight) string {
	if !slices.ContainsFunc(weights, func(w plan.PortWeight) bool { return w.Weight != weights[0].Weight }) {
		return ""
	}
	out := portWeights{}
	for _, w := range weights {
		out[w.Port] = map[string]int32{
			workload.BackendName(root, v1alpha1.RoleStable): totalWeight - w.Weight, workload.BackendName(root, v1alpha1.RoleCanary): w.Weight,
		}
	}
	return encode(out)
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of strings and numbers always have a text
	}
	return string(text)
}

// protocols are what spec.services says that ports of a Service speak.
func (s *scene) protocols(root *corev1.Service) string {
	out := map[string]string{}
	for _, service := range s.CanaryRelease.Spec.Services {
		for _, p := range service.Ports {
			if service.Service != root.Name || p.Protocol == "" {
				continue
			}
			transport := corev1.ProtocolTCP
			if p.Protocol == v1alpha1.CanaryProtocolUDP {
				transport = corev1.ProtocolUDP
			}
			out[plan.Port{Number: p.Port, Transport: string(transport)}.String()] = string(p.Protocol)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return encode(out)
}

func encodeResources(r *v1alpha1.CanaryResources) string {
	if r == nil {
		return ""
	}
	return encode(r)
}

// observeSplit reads what the split of a Service says and whether that is in effect.
func (s *scene) observeSplit(name string, root *corev1.Service) plan.Split {
	split := s.splits[name]
	if split == nil {
		return plan.Split{Presence: plan.Absent}
	}
	out := plan.Split{
		Presence: plan.Present, UID: split.UID, ResourceVersion: split.ResourceVersion, Ours: isMarked(split, s.CanaryRelease),
		Deleting: !split.DeletionTimestamp.IsZero(), Proxies: int32(len(split.Status.Proxies)), //nolint:gosec // bounded by the schema
	}
	if root != nil {
		out.Requested = s.requested(split, root)
	}
	if c := current(split, splitv1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		out.Refused, out.Unserved = c.Message, len(split.Status.Backends) == 0
		return out
	}
	if c := current(split, splitv1.ConditionProgrammed); c != nil {
		out.InEffect, out.Waiting = c.Status == metav1.ConditionTrue, c.Message
	}
	return out
}

// requested are the weights that a split asks for; nil when it is not what Serin writes.
func (s *scene) requested(split *splitv1.TrafficSplit, root *corev1.Service) []plan.PortWeight {
	stable, canary := workload.BackendName(root.Name, v1alpha1.RoleStable), workload.BackendName(root.Name, v1alpha1.RoleCanary)
	if split.Spec.Service != root.Name || len(split.Spec.Matches) > 0 || len(split.Spec.Backends) != 2 {
		return nil
	}
	common, ok := share(map[string]int32{
		split.Spec.Backends[0].Service: split.Spec.Backends[0].Weight, split.Spec.Backends[1].Service: split.Spec.Backends[1].Weight,
	}, stable, canary)
	if !ok {
		return nil
	}
	var own portWeights
	if text, found := split.Annotations[splitv1.AnnotationPortWeights]; found && json.Unmarshal([]byte(text), &own) != nil {
		return nil
	}
	var out []plan.PortWeight
	for _, p := range root.Spec.Ports {
		port := plan.Port{Number: p.Port, Transport: string(p.Protocol)}
		if p.Protocol == "" {
			port.Transport = string(corev1.ProtocolTCP)
		}
		weight := common
		if of, found := own[port.String()]; found {
			if weight, ok = share(of, stable, canary); !ok {
				return nil
			}
		}
		out = append(out, plan.PortWeight{Port: port.String(), Weight: weight})
	}
	slices.SortFunc(out, func(a, b plan.PortWeight) int { return strings.Compare(a.Port, b.Port) })
	for key, value := range s.annotations(root, out) {
		if split.Annotations[key] != value {
			return nil
		}
	}
	return out
}

// share is the canary's percentage by the weights of both versions, if it is a whole one.
func share(weights map[string]int32, stable, canary string) (int32, bool) {
	s, known := weights[stable]
	c, found := weights[canary]
	sum := int64(s) + int64(c)
	if !known || !found || s < 0 || c < 0 || sum == 0 || int64(c)*totalWeight%sum != 0 {
		return 0, false
	}
	return int32(int64(c) * totalWeight / sum), true //nolint:gosec // at most 100
}

// current is a condition of the present generation.
func current(split *splitv1.TrafficSplit, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(split.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != split.Generation {
		return nil
	}
	return c
}

// root is the root Service of a name; nil when there is none to share the traffic of.
func (s *scene) root(name string) *corev1.Service {
	if root := s.services[name]; root != nil && len(traffic.DeclaredSelector(root)) > 0 {
		return root
	}
	return nil
}
