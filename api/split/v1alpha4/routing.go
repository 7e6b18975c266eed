// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// AnnotationRouting on a TrafficSplit holds its Routing, as YAML or JSON. It is an
// annotation, since the CRD of a TrafficSplit may be that of a mesh, which drops fields
// that the specification does not have.
const AnnotationRouting = "serin.dev/routing"

// maxRoutingBytes bounds the annotation: some 100 ports with the weights of 32 backends.
const maxRoutingBytes = 128 << 10

// Routing is what a router needs to know of a TrafficSplit beyond the specification.
type Routing struct {
	// router that serves the split. When empty, the operator's default router does.
	Router string `json:"router,omitempty"`

	// defaultBackend names the Service, in the same namespace, that gets the requests
	// that are not split. It may be one of spec.backends. With spec.matches those are
	// the requests that match none; when it is empty, the pods that the root Service
	// selects get them.
	// With a router that changes the routes of a gateway or mesh they are also the
	// requests that reach the root Service past it: the root Service is narrowed to the
	// pods of this Service while the split exists.
	DefaultBackend string `json:"defaultBackend,omitempty"`

	// routes, in the same namespace, in which the router of a gateway or mesh replaces
	// the root Service by the backends. When empty, the router makes a route for the
	// root Service.
	Routes []RouteReference `json:"routes,omitempty"`

	// mirror has requests copied to one more Service, whose answers are thrown away.
	// When unset, nothing is copied.
	Mirror *Mirror `json:"mirror,omitempty"`

	// stickyCookie has clients come back to the backend that they were given first. A
	// client whose backend has a weight of 0 is drawn anew. When unset, each request is
	// drawn independently.
	StickyCookie *StickyCookie `json:"stickyCookie,omitempty"`

	// ports are the rules of individual ports of the root Service, by "<number>/<TCP or UDP>".
	Ports map[string]PortRouting `json:"ports,omitempty"`

	// proxyPods is how the pods of the split's proxies run. Routers without proxies of their
	// own ignore it.
	ProxyPods *ProxyPods `json:"proxyPods,omitempty"`
}

// RouteReference names a route of a gateway or mesh in the split's namespace.
type RouteReference struct {
	// kind of the route, such as HTTPRoute or VirtualService.
	Kind string `json:"kind"`

	// name of the route.
	Name string `json:"name"`

	// section is the name of the one HTTP route of a VirtualService that is changed.
	// When empty, all that send requests to the root Service are.
	Section string `json:"section,omitempty"`
}

// String is the route in messages: "HTTPRoute/website", or
// "VirtualService/website:checkout" with its section.
func (r RouteReference) String() string {
	if r.Section == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Name + ":" + r.Section
}

// Mirror copies requests to one more Service.
type Mirror struct {
	// service, in the same namespace, that gets the mirrored requests.
	Service string `json:"service"`

	// percent of the requests to other backends that are mirrored, 1 to 100.
	Percent int32 `json:"percent"`
}

// StickyCookie is the cookie by which clients come back to their backend.
type StickyCookie struct {
	// name of the cookie: a letter followed by letters, digits and _, at most 64
	// characters.
	Name string `json:"name"`

	// maxAge of the cookie: a duration of whole seconds from 1s to 8760h. When empty,
	// the cookie lasts as long as the client's session.
	MaxAge string `json:"maxAge,omitempty"`

	// session distinguishes cookies that were given before from those that are given now: a
	// client with one of another session is drawn anew. A Rollout names each release.
	Session string `json:"session,omitempty"`
}

// PortRouting are the rules of one port of the root Service.
type PortRouting struct {
	// protocol that the port speaks, where its appProtocol and name do not say so: HTTP
	// (HTTP/1.1), HTTP2 (without TLS, as for gRPC), HTTPS (passed on unread, as TCP) or
	// TCP for a port of TCP, and UDP for one of UDP. When empty, what the Service says
	// holds.
	Protocol string `json:"protocol,omitempty"`

	// weights of the backends on this port, instead of those of spec.backends. A backend
	// that is not named has the weight 0, and at least one weight is above 0. When
	// unset, the port has the weights of spec.backends.
	Weights map[string]PortWeight `json:"weights,omitempty"`
}

// PortWeight is a backend's share of a port relative to the sum of all: a whole number
// from 0 to 2147483647.
type PortWeight int32

// UnmarshalJSON refuses what is no such number, null too: a weight that is missing is
// not 0.
func (w *PortWeight) UnmarshalJSON(text []byte) error {
	var n *float64
	if err := json.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("a weight: %w", err)
	}
	if n == nil || *n != math.Trunc(*n) || *n < 0 || *n > math.MaxInt32 {
		return fmt.Errorf("the weight %s is not a whole number from 0 to %d", text, math.MaxInt32)
	}
	*w = PortWeight(*n)
	return nil
}

// RoutingOf reads the Routing of a split; the zero value when it has none. An error says
// why the annotation can't be read and how to write it.
func RoutingOf(split *TrafficSplit) (Routing, error) {
	text, found := split.Annotations[AnnotationRouting]
	if !found {
		return Routing{}, nil
	}
	r, err := parseRouting(text)
	if err != nil {
		return Routing{}, fmt.Errorf("metadata.annotations[%s]: can't be read (%.200s); write YAML or JSON such as "+
			"{router: nginx, mirror: {service: website-canary, percent: 10}}, or remove it", AnnotationRouting, err.Error())
	}
	return r, nil
}

// parseRouting reads JSON, which is what Serin writes, or else YAML, which takes several times as
// long.
func parseRouting(text string) (Routing, error) {
	if len(text) > maxRoutingBytes {
		return Routing{}, fmt.Errorf("has more than %d bytes", maxRoutingBytes)
	}
	var w written
	if unknown, err := kjson.UnmarshalStrict([]byte(text), &w); err == nil && len(unknown) == 0 {
		return w.routing(), nil
	}
	w = written{}
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		return Routing{}, err
	}
	return w.routing(), nil
}

// written is a Routing as it may be in a cluster: splits of before an upgrade have the resources
// of proxies beside proxyPods.
type written struct {
	Routing        `json:",inline"`
	ProxyResources *ProxyResources `json:"proxyResources,omitempty"`
}

func (w *written) routing() Routing {
	r := w.Routing
	if w.ProxyResources != nil {
		if r.ProxyPods == nil {
			r.ProxyPods = &ProxyPods{}
		}
		if r.ProxyPods.Resources == nil {
			r.ProxyPods.Resources = w.ProxyResources
		}
	}
	return r
}

// SetRouting writes the Routing of a split as JSON, and removes the annotation when it is
// the zero value.
func SetRouting(split *TrafficSplit, r Routing) {
	if reflect.DeepEqual(r, Routing{}) {
		delete(split.Annotations, AnnotationRouting)
		return
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and lists of them always have a text
	}
	metav1.SetMetaDataAnnotation(&split.ObjectMeta, AnnotationRouting, string(text))
}

// RoutingDigest tells the Routings of a split apart, which change without its generation:
// 16 hexadecimal digits, "" for a split without one.
func RoutingDigest(split *TrafficSplit) string {
	text, found := split.Annotations[AnnotationRouting]
	if !found {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// CurrentCondition is a condition of a split that is about its present generation and
// Routing; nil when there is none.
func CurrentCondition(split *TrafficSplit, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(split.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != split.Generation || split.Status.ObservedRouting != RoutingDigest(split) {
		return nil
	}
	return c
}

// EditRouting changes the Routing of a split, and begins with an empty one where it can't
// be read.
func EditRouting(split *TrafficSplit, edit func(*Routing)) {
	r, _ := RoutingOf(split)
	edit(&r)
	SetRouting(split, r)
}
