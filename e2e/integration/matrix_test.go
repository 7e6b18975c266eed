// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// subject is a column of the page's tables.
type subject struct {
	name string
	// user that has the role, of the form that a namespace gives.
	user string
	// role that the test binds; empty for an account that has what the chart binds.
	role string
	// everywhere is whether it is bound in the whole cluster.
	everywhere bool
}

// dashboardAccount is what the dashboard's pod runs as, which the chart makes and binds.
const dashboardAccount = "system:serviceaccount:" + operatorSpace + ":" + release + "-dashboard"

func subjectsIn(namespace string) []subject {
	account := "system:serviceaccount:" + namespace + ":"
	return []subject{
		{name: "view", user: "matrix-viewer", role: "view"},
		{name: "edit", user: "matrix-editor", role: "edit"},
		{name: "admin", user: "matrix-admin", role: "admin"},
		{name: "promoter", user: "matrix-promoter", role: release + "-promoter"},
		{name: "freezer", user: "matrix-freezer", role: release + "-freezer", everywhere: true},
		{name: "CI account", user: account + "ci", role: "edit"},
		{name: "proxies", user: account + "serin-proxy", role: release + "-proxy"},
		{name: "dashboard", user: dashboardAccount},
	}
}

// bindAll gives each subject its role.
func (s *scene) bindAll(subjects []subject) {
	s.Helper()
	for _, who := range subjects {
		if who.role == "" {
			continue
		}
		if !who.everywhere {
			s.bindClusterRole(who.user, who.role)
			continue
		}
		b := &rbacv1.ClusterRoleBinding{Subjects: user(who.user), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: who.role}}
		b.GenerateName = "matrix-"
		if err := admin.Create(s.Context(), b); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() {
			if err := admin.Delete(context.WithoutCancel(s.Context()), b); err != nil {
				s.Error(err)
			}
		})
	}
}

// tableOf reads the table of the rights page whose first heading has a name: the cells of
// each row by the heading of their column.
func tableOf(t *testing.T, first string) (columns []string, rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2 || strings.HasPrefix(cells[0], "---"):
			if columns != nil && len(cells) < 2 {
				return columns, rows
			}
		case columns != nil:
			rows = append(rows, cells)
		case cells[0] == first:
			columns = cells
		}
	}
	return columns, rows
}

// matrixVerbs are all that are asked about, in the order of the words of the page.
var matrixVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "promote"}

// verbsOf are the verbs of a cell.
func verbsOf(cell string) []string {
	words := strings.NewReplacer("read", "get, list, watch", "write", "create, update, patch, delete, deletecollection", "–", "").Replace(cell)
	return strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' })
}

// attributesOf is a row's resource, written as kubectl does: rollouts.serin.dev/status.
func attributesOf(row, namespace string) authorizationv1.ResourceAttributes {
	kind, sub, _ := strings.Cut(strings.Trim(row, "`"), "/")
	resource, group, _ := strings.Cut(kind, ".")
	if slices.Contains([]string{"freezes", "clusteranalysistemplates", "clustermetricproviders"}, resource) {
		namespace = "" // they belong to none
	}
	return authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Subresource: sub}
}

// verbsAllowed asks the authorizer about every verb.
func verbsAllowed(ctx context.Context, user string, a authorizationv1.ResourceAttributes) (verbs []string, err error) {
	for _, verb := range matrixVerbs {
		a.Verb = verb
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: groupsOf(user), ResourceAttributes: a.DeepCopy(),
		}}
		if err := admin.Create(ctx, review); err != nil {
			return nil, err
		}
		if review.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

func TestTheRightsOverKindsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	subjects := subjectsIn(s.namespace)
	s.bindAll(subjects)
	s.checkTable("resource", subjects, func(ctx context.Context, row string, who subject, cell string) (string, error) {
		got, err := verbsAllowed(ctx, who.user, attributesOf(row, s.namespace))
		if err == nil && slices.Equal(got, verbsOf(cell)) {
			return cell, nil // the words of the page
		}
		return strings.Join(got, ", "), err
	})
}

// checkTable asks about every cell until all are as the page has them: the API server takes
// some moments to take notice of bindings and policies.
func (s *scene) checkTable(first string, subjects []subject, ask func(ctx context.Context, row string, who subject, cell string) (string, error)) {
	s.Helper()
	columns, rows := tableOf(s.T, first)
	if len(rows) < 10 || len(columns) != len(subjects)+1 {
		s.Fatalf("the page has the columns %v and %d rows", columns, len(rows))
	}
	want, got := map[string]string{}, make([]map[string]string, len(subjects))
	for _, row := range rows {
		for i := range subjects {
			want[row[0]+": "+subjects[i].name] = row[i+1]
		}
	}
	var all map[string]string
	var failed error
	poll(s.Context(), func(ctx context.Context) bool {
		var asking errgroup.Group
		for i, who := range subjects {
			if columns[i+1] != who.name {
				s.Fatalf("column %d is %s, want %s", i+1, columns[i+1], who.name)
			}
			got[i] = map[string]string{}
			asking.Go(func() error {
				for _, row := range rows {
					cell, err := ask(ctx, row[0], who, row[i+1])
					if err != nil {
						return fmt.Errorf("%s, %s: %w", row[0], who.name, err)
					}
					got[i][row[0]+": "+who.name] = cell
				}
				return nil
			})
		}
		if err := asking.Wait(); err != nil {
			failed = err
			return false
		}
		all, failed = map[string]string{}, nil
		for _, of := range got {
			maps.Copy(all, of)
		}
		return cmp.Equal(want, all)
	})
	if diff := cmp.Diff(want, all); diff != "" || failed != nil {
		s.Errorf("%v (-page +API server):\n%s", failed, diff)
	}
}

// rulesOf are all rights of a user in a namespace.
func rulesOf(t *testing.T, user, namespace string) []string {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := as(t, user).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, r := range review.Status.ResourceRules {
		rules = append(rules, fmt.Sprintf("%v of %v in %v named %v", r.Verbs, r.Resources, r.APIGroups, r.ResourceNames))
	}
	for _, r := range review.Status.NonResourceRules {
		rules = append(rules, fmt.Sprintf("%v of %v", r.Verbs, r.NonResourceURLs))
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

func TestTheDashboardsAccountHasTheRightsOfAnyAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	account := &corev1.ServiceAccount{}
	namespace, name, err := serviceaccount.SplitUsername(dashboardAccount)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, account); err != nil {
		t.Fatalf("the chart's dashboard has another account: %v", err)
	}
	for _, namespace := range []string{operatorSpace, s.namespace, metav1.NamespaceSystem} {
		anyone := rulesOf(t, "system:serviceaccount:"+operatorSpace+":anyone", namespace)
		if diff := cmp.Diff(anyone, rulesOf(t, dashboardAccount, namespace)); diff != "" || len(anyone) == 0 {
			t.Errorf("in %s (-any account +the dashboard's):\n%s", namespace, diff)
		}
		if cmp.Equal(anyone, rulesOf(t, operatorUser, namespace)) {
			t.Errorf("in %s the manager's account has no rights either, so that the comparison says nothing", namespace)
		}
	}
}

// guardedChange is a row of the page: what a user would send.
type guardedChange struct {
	object func(*scene) client.Object
	patch  string
}

const jobOfAMetric = `[{"name":"steal","provider":{"type":"job","job":{"template":{"spec":{"template":{"spec":{"restartPolicy":"Never",
	"containers":[{"name":"sh","image":"busybox","command":["sh"]}]}}}}}}}]`

func plainRollout(s *scene) client.Object { return s.named("plain") }
func decidedRollout(s *scene) client.Object {
	ro := s.named("decided")
	ro.Spec.Control = decision(v1alpha1.ControlPromote, "")
	return ro
}
func triedCanary(s *scene) client.Object { return s.tried("tried", "") }
func plainSplit(s *scene) client.Object  { return s.routedBy("split", "") }

func aTemplate(s *scene) client.Object {
	at := &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}}
	const spec = `metrics: [{name: errors, provider: {type: prometheus, prometheus: {address: "http://p:9090", query: "up"}}, max: "1"}]`
	if err := yaml.Unmarshal([]byte(spec), &at.Spec); err != nil {
		s.Fatal(err)
	}
	return at
}

// aFreeze stops no release.
func aFreeze(s *scene) client.Object {
	f := &v1alpha1.Freeze{Spec: v1alpha1.FreezeSpec{Reason: "audit", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "namespace"}}}}
	f.Name = s.namespace
	return f
}

var guardedChanges = map[string]guardedChange{
	"decide: `spec.control` of a Rollout":                                       {decidedRollout, `{"spec":{"control":{"action":"Abort","by":null}}}`},
	"decide in another user's name: `spec.control.by`":                          {decidedRollout, `{"spec":{"control":{"action":"Abort","by":"another"}}}`},
	"take a decision away: `spec.control` is removed":                           {decidedRollout, `{"spec":{"control":null}}`},
	"pause: `spec.paused` of a Rollout":                                         {plainRollout, `{"spec":{"paused":true}}`},
	"change the steps: `spec.strategy` of a Rollout":                            {plainRollout, `{"spec":{"strategy":{"steps":[{"weight":100}]}}}`},
	"send a hook or notification: `spec.notifications` of a Rollout":            {plainRollout, `{"spec":{"notifications":[{"name":"n","endpoint":{"url":"https://example.org"}}]}}`},
	"set labels, annotations or finalizers of a Rollout":                        {plainRollout, `{"metadata":{"labels":{"a":"b"}}}`},
	"run a Job: `spec.analysis.metrics` of a Rollout":                           {plainRollout, `{"spec":{"analysis":{"metrics":` + jobOfAMetric + `}}}`},
	"run a Job: `spec.metrics` of an AnalysisTemplate":                          {aTemplate, `{"spec":{"metrics":` + jobOfAMetric + `}}`},
	"change routes: `spec.routeRefs` of a Rollout":                              {plainRollout, `{"spec":{"router":"gatewayAPI","routeRefs":[{"kind":"HTTPRoute","name":"web"}]}}`},
	"have routes made: `spec.router` of a Rollout":                              {plainRollout, `{"spec":{"router":"istio"}}`},
	"change routes: the annotation `serin.dev/routing` of a TrafficSplit":       {plainSplit, `{"metadata":{"annotations":{"serin.dev/routing":"router: gatewayAPI"}}}`},
	"say how proxies run: `spec.proxyPods` of a Rollout":                        {plainRollout, `{"spec":{"proxyPods":{"priorityClassName":"high"}}}`},
	"say how proxies run: the annotation `serin.dev/routing` of a TrafficSplit": {plainSplit, `{"metadata":{"annotations":{"serin.dev/routing":"proxyPods: {priorityClassName: high}"}}}`},
	"move traffic: weights of a TrafficSplit":                                   {plainSplit, `{"spec":{"backends":[{"service":"split-v1","weight":1},{"service":"split-v2","weight":1}]}}`},
	"end a CanaryRelease: `spec.transition`":                                    {triedCanary, `{"spec":{"transition":"Adopted"}}`},
	"let a Rollout end a CanaryRelease: `spec.delegation`":                      {triedCanary, `{"spec":{"delegation":{"rollout":"website"}}}`},
	"try other values: `spec.config` of a CanaryRelease":                        {triedCanary, `{"spec":{"config":"replicas: 2"}}`},
	"stop releases of the cluster: `spec` of a Freeze":                          {aFreeze, `{"spec":{"reason":"closed"}}`},
}

func TestTheFieldsThatUsersMayChangeAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	s := newScene(t, labelled(labelDecisions, signed))
	subjects := subjectsIn(s.namespace)
	s.bindAll(subjects)
	objects := map[string]client.Object{}
	for row, change := range guardedChanges {
		o := change.object(s)
		objects[row] = o
		if _, isFreeze := o.(*v1alpha1.Freeze); isFreeze {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := admin.Delete(context.WithoutCancel(t.Context()), o); err != nil {
					t.Error(err)
				}
			})
			continue
		}
		o.SetNamespace(s.namespace)
		if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	asked := map[string]bool{}
	clients := map[string]client.Client{}
	for _, who := range subjects {
		clients[who.user] = as(t, who.user)
	}
	_, rows := tableOf(t, "change")
	for _, row := range rows {
		asked[row[0]] = true
		if guardedChanges[row[0]].patch == "" {
			t.Fatalf("the row %q of the page has no change", row[0])
		}
	}
	for row := range guardedChanges {
		if !asked[row] {
			t.Errorf("the page has no row %q", row)
		}
	}
	s.checkTable("change", subjects, func(ctx context.Context, row string, who subject, _ string) (string, error) {
		o, _ := objects[row].DeepCopyObject().(client.Object)
		err := clients[who.user].Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(guardedChanges[row].patch)), client.DryRunAll)
		switch {
		case err == nil:
			return "yes", nil
		case apierrors.IsForbidden(err):
			return "no", nil
		}
		return "", err
	})
}
