// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

func (c *canary) convert() {
	spec := c.object.Field("spec")
	kind, name := spec.At("targetRef", "kind"), spec.At("targetRef", "name").Text()
	spec.At("targetRef", "apiVersion").Read()
	if kind.Text() != "Deployment" {
		kind.Fail("is %q: Serin releases Deployments, whose old pods can stay until the new version has proved itself", kind.Text())
	}
	if name == "" {
		spec.At("targetRef", "name").Missing("name the Deployment")
	}
	c.serin = target.Rollout(c.object, name)
	template, replicas := c.deployment(name)
	c.root(spec, name, template)
	c.provider(spec)
	if f := spec.At("progressDeadlineSeconds"); f.Present() {
		c.serin.Spec.ProgressDeadline = target.Duration(time.Duration(f.Int(600, 1, 99999)) * time.Second)
	}
	c.serin.Spec.Paused = spec.At("suspend").Flag(false)
	if spec.At("skipAnalysis").Flag(false) {
		spec.At("skipAnalysis").Note(source.NoEqual, "every release is analysed: to skip the steps of one, use kubectl traffic rollout promote --full")
	}
	if f := spec.At("autoscalerRef", "name"); f.Present() {
		spec.At("autoscalerRef", "kind").Read()
		spec.At("autoscalerRef", "apiVersion").Read()
		f.Note(source.ToDo, "keep %s for the Deployment %s, and delete %s-primary after the switch", f.Text(), name, f.Text())
	}
	if old := spec.At("canaryAnalysis"); old.Present() {
		old.Read().Fail("is the old name of analysis: rename it")
	}
	analysis := spec.At("analysis")
	if !analysis.Present() {
		analysis.Missing("say how a release goes on")
	}
	c.analysis(analysis)
	spec.At("targetRef", "name").Note(source.ToDo, "scale the Deployment %s to %s before the switch: Flagger keeps it at 0", name, replicas)
	c.made = append(c.made, c.serin)
	c.object.Finish(known)
}

// deployment writes the target where it was given. It returns its pod template, and how many
// replicas it needs, in words.
func (c *canary) deployment(name string) (*corev1.PodTemplateSpec, string) {
	o := c.set.Find("apps", "Deployment", c.object.Namespace(), name)
	if o == nil {
		return nil, "as many replicas as " + name + "-primary has"
	}
	d := target.Deployment(target.Meta(o, name))
	o.Field("spec").Decode(&d.Spec)
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		d.Spec.Replicas = nil
		if p := c.set.Find("apps", "Deployment", c.object.Namespace(), name+"-primary"); p != nil {
			n := p.Field("spec", "replicas").Int(1, 0, 1<<31-1)
			d.Spec.Replicas = &n
		}
	}
	c.made = append(c.made, d)
	return &d.Spec.Template, "as many replicas as " + name + "-primary has"
}

// root writes the Service that clients call, which Flagger made from the Canary.
func (c *canary) root(spec source.Field, deployment string, template *corev1.PodTemplateSpec) {
	f := spec.At("service")
	c.service = f.At("name").Text()
	if c.service == "" {
		c.service = deployment
	}
	c.serin.Spec.Service = c.service
	if len(c.service) > target.LongestService {
		f.At("name").Fail("has %d characters: the name of the Service that clients call has at most %d", len(c.service), target.LongestService)
	}
	meta := metav1.ObjectMeta{Name: c.service, Namespace: c.object.Namespace()}
	if apex := f.At("apex"); apex.Present() {
		meta.Labels, meta.Annotations = apex.At("labels").Texts(), apex.At("annotations").Texts()
	}
	selector := map[string]string{"app": deployment}
	if template == nil {
		spec.At("targetRef", "name").Note(source.Assumed, "the Deployment %s was not given: the Service selects pods with the label app=%s, as Flagger does by default", deployment, deployment)
	} else if value, found := template.Labels["app"]; found {
		selector["app"] = value
	} else {
		selector = template.Labels
	}
	svc := target.Service(meta, selector)
	svc.Spec.Ports = c.ports(f, template)
	if f.At("headless").Flag(false) {
		f.At("headless").Note(source.NoEqual, "a Service without an address of its own can't be split: the written one has an address")
	}
	if t := f.At("trafficDistribution"); t.Present() {
		value := t.Text()
		svc.Spec.TrafficDistribution = &value
	}
	for _, name := range []string{c.service + "-primary", c.service + "-canary"} {
		f.Note(source.ToDo, "delete the Service %s after the switch", name)
	}
	c.made = append(c.made, svc)
}

// ports are the one that the Canary names, and those of the containers with portDiscovery.
func (c *canary) ports(f source.Field, template *corev1.PodTemplateSpec) []corev1.ServicePort {
	port := corev1.ServicePort{Name: cmp.Or(f.At("portName").Text(), "http"), Port: f.At("port").Int(0, 1, 65535)}
	if !f.At("port").Present() {
		f.At("port").Missing("give the port of the Service")
	}
	port.TargetPort = targetPort(f.At("targetPort"), port.Port)
	if p := f.At("appProtocol"); p.Present() {
		protocol := p.Text()
		port.AppProtocol = &protocol
	}
	ports := []corev1.ServicePort{port}
	discovery := f.At("portDiscovery")
	if !discovery.Flag(false) {
		return ports
	}
	if template == nil {
		discovery.Note(source.ToDo, "the Deployment was not given: add its other ports to the Service")
		return ports
	}
	for _, p := range target.Ports(*template) {
		if p.Name != port.Name && p.Port != port.Port && p.TargetPort != port.TargetPort {
			ports = append(ports, p)
		}
	}
	return ports
}

// targetPort is a name or a number; the port of the Service when it is not given, or 0, as
// Flagger writes that.
func targetPort(f source.Field, port int32) intstr.IntOrString {
	if name, is := f.Value().(string); is {
		return intstr.FromString(name)
	}
	return intstr.FromInt32(cmp.Or(f.Int(port, 0, 65535), port))
}

// provider chooses what moves the traffic.
func (c *canary) provider(spec source.Field) {
	f := spec.At("provider")
	ro := &c.serin.Spec
	switch p := f.Text(); p {
	case "":
		f.Note(source.Assumed, "the provider is in the settings of Flagger: the operator's default router shares the traffic. Write spec.router for another one")
	case "kubernetes":
	case "nginx":
		ro.Router = v1alpha1.RouterNginx
		f.Note(source.Differs, "Serin's proxies behind the Service %s share the traffic, and the Ingress stays as it is: delete the Ingress for the canary that Flagger made", c.service)
	case "istio":
		ro.Router = v1alpha1.RouterIstio
		c.virtualService(spec.At("service"))
	case "gatewayapi:v1", "gatewayapi:v1beta1", "gatewayapi":
		ro.Router = v1alpha1.RouterGatewayAPI
		c.httpRoute(spec.At("service"))
	case "smi:v1alpha1", "smi:v1alpha2", "smi:v1alpha3", "linkerd", "osm":
		ro.Router = v1alpha1.RouterSMI
		f.Note(source.ToDo, "delete the TrafficSplit %s that Flagger made: Serin makes one with the name of the Rollout", c.service)
	case "appmesh", "appmesh:v1beta2", "apisix", "contour", "gloo", "knative", "kuma", "skipper", "traefik":
		f.Note(source.NoEqual, "Serin's proxies behind the Service %s share the traffic: have the routes of %s send to that Service only. Where it serves the Gateway API, write router: gatewayAPI and routeRefs", c.service, p)
	default:
		f.Fail("is %q, which is not a provider that is known here: correct it", p)
	}
	for _, name := range []string{"ingressRef", "routeRef", "upstreamRef"} {
		if ref := spec.At(name); ref.Present() {
			ref.Read().Note(source.ToDo, "keep %s %s, and have it send to the Service %s only", ref.At("kind").Text(), ref.At("name").Text(), c.service)
		}
	}
}
