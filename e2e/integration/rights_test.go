// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	rightsPolicy      = release + "-rights"
	splitRightsPolicy = release + "-split-rights"
)

// writers are a namespace with users who may write Serin's objects: writer nothing else, router
// also the routes "web", and runner also Jobs, Deployments and every HTTPRoute.
func writers(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, labelled(labelDecisions, unsigned))
	objects := rbacv1.PolicyRule{
		APIGroups: []string{"serin.dev", "split.smi-spec.io"}, Resources: []string{"rollouts", "analysistemplates", "trafficsplits"},
		Verbs: []string{"create", "update", "patch"},
	}
	routes := rbacv1.PolicyRule{
		APIGroups: []string{"gateway.networking.k8s.io", "networking.istio.io"}, Resources: []string{"httproutes", "virtualservices"},
		ResourceNames: []string{"web"}, Verbs: []string{"patch"},
	}
	all := rbacv1.PolicyRule{
		APIGroups: []string{"gateway.networking.k8s.io", "batch", "apps"}, Resources: []string{"httproutes", "grpcroutes", "tcproutes", "udproutes", "jobs", "deployments"},
		Verbs: []string{"create", "patch"},
	}
	s.allow("writer", objects)
	s.allow("router", objects, routes)
	s.allow("runner", objects, all)
	for _, name := range []string{"writer", "router", "runner"} {
		s.waitRights(name, may{"create", "rollouts", ""}, may{"create", "analysistemplates", ""})
	}
	s.eventually("the policies about rights are in force", func(ctx context.Context) bool {
		ro, split := s.named("probe"), s.routedBy("probe", "router: istio")
		ro.Spec.Router = v1alpha1.RouterIstio
		refused := as(t, "writer").Create(ctx, ro, client.DryRunAll)
		splitRefused := as(t, "writer").Create(ctx, split, client.DryRunAll)
		router := s.named("probe")
		router.Spec.RouteRefs = []v1alpha1.RouteReference{{Kind: "VirtualService", Name: "web"}}
		runner := s.routedBy("probe", "router: gatewayAPI")
		return apierrors.IsForbidden(refused) && apierrors.IsForbidden(splitRefused) &&
			as(t, "router").Create(ctx, router, client.DryRunAll) == nil && as(t, "runner").Create(ctx, runner, client.DryRunAll) == nil
	})
	return s
}

func (s *scene) routedBy(name, routing string) *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	if routing != "" {
		split.Annotations = map[string]string{splitv1.AnnotationRouting: routing}
	}
	split.Spec = splitv1.TrafficSplitSpec{Service: name, Backends: []splitv1.Backend{{Service: name + "-v1", Weight: 1}, {Service: name + "-v2", Weight: 0}}}
	return split
}

// withSpec is a Rollout with more in its spec.
func (s *scene) withSpec(name, spec string) *v1alpha1.Rollout {
	s.Helper()
	ro := s.named(name)
	if err := yaml.Unmarshal([]byte(spec), &ro.Spec); err != nil {
		s.Fatal(err)
	}
	return ro
}

// aJob is a metric that runs a Job with an account and a Secret of the namespace.
const aJob = `{name: steal, provider: {type: job, job: {template: {spec: {template: {spec: {serviceAccountName: admin, restartPolicy: Never,
  containers: [{name: sh, image: busybox, command: [sh]}]}}}}}}}`

func TestARolloutHasSerinDoWhatItsAuthorMayDo(t *testing.T) {
	t.Parallel()
	s := writers(t)
	const noRoutes = `spec.routeRefs: user "%s" may not patch `
	for i, test := range []struct{ does, user, spec, want string }{
		{"a metric of a Job", "writer", "analysis: {metrics: [" + aJob + "]}", `the metric "steal" runs a Job, and user "writer" may not create Jobs (jobs.batch) in the namespace`},
		{"a metric of a Job by a user who may", "runner", "analysis: {metrics: [" + aJob + "]}", ""},
		{"a route", "writer", "{router: gatewayAPI, routeRefs: [{kind: HTTPRoute, name: web}]}", fmt.Sprintf(noRoutes, "writer") + "HTTPRoute/web in the namespace"},
		{"a route that they may patch", "router", "{router: gatewayAPI, routeRefs: [{kind: HTTPRoute, name: web}]}", ""},
		{"another route beside it", "router", "{router: gatewayAPI, routeRefs: [{kind: HTTPRoute, name: web}, {kind: HTTPRoute, name: bank}]}", fmt.Sprintf(noRoutes, "router") + "HTTPRoute/bank in the namespace"},
		{"a route of another kind", "runner", "{router: gatewayAPI, routeRefs: [{kind: TLSRoute, name: web}]}", fmt.Sprintf(noRoutes, "runner") + "TLSRoute/web"},
		{"a VirtualService", "runner", "{router: istio, routeRefs: [{kind: VirtualService, name: web}]}", fmt.Sprintf(noRoutes, "runner") + "VirtualService/web"},
		{"a route that the router makes", "router", "router: gatewayAPI", `spec.router: user "router" may not create httproutes.gateway.networking.k8s.io`},
		{"by a user who may", "runner", "router: gatewayAPI", ""},
		{"a VirtualService that the router makes", "runner", "router: istio", `spec.router: user "runner" may not create virtualservices.networking.istio.io`},
		{"how proxies run", "writer", "proxyPods: {priorityClassName: high}", `spec.proxyPods: user "writer" may not create Deployments (deployments.apps) in the namespace`},
		{"how proxies run, by a user who may", "runner", "proxyPods: {priorityClassName: high}", ""},
		{"no route and no Job", "writer", "router: nginx", ""},
	} {
		s.Run(test.does, func(t *testing.T) {
			s := &scene{T: t, namespace: s.namespace}
			name := fmt.Sprintf("made%d", i)
			s.wantError(as(t, test.user).Create(t.Context(), s.withSpec(name, test.spec)), test.want)
			plain := s.named("changed" + name)
			s.create(plain)
			changed := s.withSpec(plain.Name, test.spec)
			changed.ResourceVersion = plain.ResourceVersion
			s.wantError(as(t, test.user).Update(t.Context(), changed), test.want)
		})
	}

	// What said nothing to one router has another one run proxies. The Service and the workload
	// can't be changed.
	ro := s.withSpec("routed", "{router: gatewayAPI, proxyPods: {priorityClassName: high}}")
	s.create(ro)
	for _, test := range []struct{ user, patch, want string }{
		{"writer", `{"spec":{"paused":true}}`, ""},
		{"writer", `{"spec":{"router":"nginx"}}`, `spec.proxyPods: user "writer" may not create Deployments (deployments.apps) in the namespace`},
		{"writer", `{"spec":{"router":"nginx","proxyPods":null}}`, ""},
		{"runner", `{"spec":{"router":"nginx"}}`, ""},
	} {
		err := as(t, test.user).Patch(t.Context(), ro.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(test.patch)), client.DryRunAll)
		s.wantError(err, test.want)
	}
}

func TestAUserEditsBesideWhatAnotherUserMayDo(t *testing.T) {
	t.Parallel()
	s := writers(t)
	ro := s.withSpec("website", "{router: gatewayAPI, proxyPods: {replicas: 3}, routeRefs: [{kind: HTTPRoute, name: bank}], analysis: {metrics: ["+aJob+"]}}")
	s.create(ro)
	for _, test := range []struct{ does, patch, want string }{
		{"pauses", `{"spec":{"paused":true}}`, ""},
		{"changes how proxies run", `{"spec":{"proxyPods":{"replicas":4}}}`, "spec.proxyPods: user"},
		{"leaves that to the operator", `{"spec":{"proxyPods":null}}`, ""},
		{"removes the metric", `{"spec":{"analysis":null}}`, ""},
		{"removes the route, for which the router makes one", `{"spec":{"routeRefs":null}}`, "spec.router: user"},
		{"leads the route to another Service", `{"spec":{"service":"other"}}`, "spec.routeRefs: user"},
		{"has the proxies do it", `{"spec":{"router":"nginx","routeRefs":null}}`, ""},
	} {
		err := s.merge("writer", ro.DeepCopy(), test.patch)
		if test.want != "" && apierrors.IsInvalid(err) {
			continue // the schema refuses it before
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("a user %s: %v, want %q", test.does, err, test.want)
		}
	}
}

func TestATemplateRunsJobsForThoseWhoMayCreateThem(t *testing.T) {
	t.Parallel()
	s := writers(t)
	template := func(name string) *v1alpha1.AnalysisTemplate {
		at := &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
		if err := yaml.Unmarshal([]byte("metrics: ["+aJob+"]"), &at.Spec); err != nil {
			t.Fatal(err)
		}
		return at
	}
	s.wantError(as(t, "writer").Create(t.Context(), template("refused")), `the metric "steal" runs a Job`)
	s.wantError(as(t, "runner").Create(t.Context(), template("taken")), "")
}

func TestATrafficSplitHasRoutesChangedThatItsAuthorMayChange(t *testing.T) {
	t.Parallel()
	s := writers(t)
	const refused = "metadata.annotations[serin.dev/routing]: user"
	for i, test := range []struct{ does, user, routing, want string }{
		{"proxies", "writer", "", ""},
		{"proxies by name", "writer", "router: nginx", ""},
		{"routes of the Gateway API", "writer", `{"router":"gatewayAPI"}`, refused},
		{"a named route", "router", "router: gatewayAPI\nroutes: [{kind: HTTPRoute, name: web}]", refused},
		{"routes of a user who may write all", "runner", "router: gatewayAPI\nroutes: [{kind: HTTPRoute, name: web}]", ""},
		{"another kind of route", "runner", "router: gatewayAPI\nroutes: [{kind: TLSRoute, name: web}]", refused},
		{"a VirtualService", "runner", "router: istio", refused},
		{"pods of proxies", "writer", "proxyPods: {replicas: 3}", refused + ` "writer" may not create Deployments`},
		{"resources of proxies where they were formerly", "writer", "proxyResources: {limits: {memory: 1Gi}}", refused + ` "writer" may not create Deployments`},
		{"pods of proxies by a user who may", "runner", "proxyPods: {replicas: 3}", ""},
		{"an escaped name", "writer", `{"router":"gateway\u0041PI"}`, refused},
		{"a name behind a tag", "writer", `router: !!binary aXN0aW8=`, refused},
	} {
		s.Run(test.does, func(t *testing.T) {
			s := &scene{T: t, namespace: s.namespace}
			name := fmt.Sprintf("made%d", i)
			s.wantError(as(t, test.user).Create(t.Context(), s.routedBy(name, test.routing)), test.want)
			plain := s.routedBy("changed"+name, "")
			s.create(plain)
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, splitv1.AnnotationRouting, test.routing)
			s.wantError(as(t, test.user).Patch(t.Context(), plain, client.RawPatch(types.MergePatchType, []byte(patch))), test.want)
		})
	}
}
