// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// usedElsewhere are what the manager may do and what no operator of these tests does, with what
// shows that it is needed.
var usedElsewhere = map[string]string{
	"delete batch/jobs": "TestAJobIsDeletedByItsUID: a metric runs a second Job, so that the first one goes",
	"patch events":      "the leader election, which counts an event that it repeats",
	"read gateway.networking.k8s.io/gatewayclasses": "TestGateway: these tests serve routes alone",
	"read gateway.networking.k8s.io/gateways":       "TestGateway: these tests serve routes alone",
	"read metrics.smi-spec.io/replicasets":          "TestReplicaSetsAreMeasuredInTheirNamespace: versions that no split shares traffic between",
	"read metrics.smi-spec.io/trafficsplits":        "TestReleasesAreMeasuredThroughTheAPIAsSoonAsItIsThere, which runs alone",
}

// reading are the verbs of a cache. A client lists where a server does not stream lists, and a
// cache gets nothing singly, so that one of them shows the need of what they read.
var reading = sets.New("get", "list", "watch")

// checkUsed reports what the chart lets the manager read or write and no operator of the tests did,
// and each exception that is none.
func checkUsed(objects []*unstructured.Unstructured, log io.Reader, elsewhere map[string]string) (problems []string, err error) {
	granted, err := grantedTo(objects, release)
	if err != nil {
		return nil, err
	}
	if len(granted) == 0 {
		return []string{"the chart grants the manager no right"}, nil
	}
	used, err := usedBy(operatorUser, log)
	if err != nil {
		return nil, err
	}
	for _, right := range slices.Sorted(maps.Keys(granted)) {
		_, excepted := elsewhere[right]
		switch {
		case used.Has(right) && excepted:
			problems = append(problems, "an operator uses the right "+right+", which is called used elsewhere")
		case !used.Has(right) && !excepted:
			problems = append(problems, "the chart grants the manager the right "+right+", which no operator of any test used")
		}
	}
	for _, right := range slices.Sorted(maps.Keys(elsewhere)) {
		if !granted.Has(right) {
			problems = append(problems, "the chart does not grant the right "+right+", which is called used elsewhere")
		}
	}
	return problems, nil
}

// grantedTo are the rights of a ServiceAccount by the chart's own roles, such as "patch apps/deployments".
func grantedTo(objects []*unstructured.Unstructured, account string) (sets.Set[string], error) {
	rules, granted := map[string][]rbacv1.PolicyRule{}, sets.Set[string]{}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	for _, o := range objects {
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		var role rbacv1.ClusterRole
		if err := convert(o.Object, &role); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		rules[o.GetKind()+" "+o.GetName()] = role.Rules
	}
	for _, o := range objects {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		if err := convert(o.Object, &binding); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind && s.Name == account }) {
			continue
		}
		for _, rule := range rules[binding.RoleRef.Kind+" "+binding.RoleRef.Name] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted.Insert(right(verb, group, resource))
					}
				}
			}
		}
	}
	return granted, nil
}

// usedBy are the rights that a user's requests in an audit log took.
func usedBy(user string, log io.Reader) (sets.Set[string], error) {
	events, err := auditEvents(log, `"username":"`+user+`"`)
	if err != nil {
		return nil, err
	}
	used := sets.Set[string]{}
	for _, e := range events {
		if e.User.Username != user {
			continue // it acted as that user
		}
		switch o := e.ObjectRef; {
		case e.ImpersonatedUser != nil:
			used.Insert(right("impersonate", "", "serviceaccounts"))
		case o != nil && o.Subresource != "":
			used.Insert(right(e.Verb, o.APIGroup, o.Resource+"/"+o.Subresource))
		case o != nil:
			used.Insert(right(e.Verb, o.APIGroup, o.Resource))
			if e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated {
				used.Insert(right("create", o.APIGroup, o.Resource)) // server-side apply needs it too
			}
		}
	}
	return used, nil
}

// right names what a verb does to a kind.
func right(verb, group, resource string) string {
	if reading.Has(verb) {
		verb = "read"
	}
	if group == "" {
		return verb + " " + resource
	}
	return verb + " " + group + "/" + resource
}
